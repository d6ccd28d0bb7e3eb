// All bytes into a descriptor, however few the system takes at a time.
#pragma once

#include <string_view>

namespace mega {

// 0, or the errno of the write that failed.
int WriteAll(int fd, std::string_view bytes);

}  // namespace mega
