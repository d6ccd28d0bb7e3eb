// A small file that is either the old one or the new one, whatever happens meanwhile.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace mega {

// Temporary file beside it → fsync → rename → fsync of the folder. One writer at a time.
absl::Status WriteFileAtomically(const std::string& path, std::string_view content);

}  // namespace mega
