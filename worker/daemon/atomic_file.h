// A small file that is either the old one or the new one, whatever happens meanwhile.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace mega::daemon {

// Temporary file → fsync → rename → fsync of the folder.
absl::Status WriteFileAtomically(const std::string& path, std::string_view content);

// The whole file, refused when larger than `max_bytes`.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t max_bytes);

}  // namespace mega::daemon
