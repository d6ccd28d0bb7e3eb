// A number of bytes, for people.
#pragma once

#include <string>

namespace mega {

std::string FormatBytes(double bytes);  // "1.5 GiB"

}  // namespace mega
