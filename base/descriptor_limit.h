// How many descriptors (files, sockets, pipes) this process may have open at once.
#pragma once

#include <cstdint>

namespace mega {

// What is in force now.
int64_t DescriptorLimit();

// To the most that the machine allows. Processes that this one starts inherit it.
void RaiseDescriptorLimit();

}  // namespace mega
