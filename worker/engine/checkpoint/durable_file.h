// Files that are there whole or not at all.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace mega::checkpoint {

// The name a file has until RenameInto.
std::string TemporaryName(const std::string& path);
// Renames TemporaryName(path) to path and syncs the folder.
absl::Status RenameInto(const std::string& path);
absl::Status WriteFileDurably(const std::string& path, std::string_view bytes);
// At most max_bytes, else INVALID_ARGUMENT. NOT_FOUND when there is no such file.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path, int64_t max_bytes);

}  // namespace mega::checkpoint
