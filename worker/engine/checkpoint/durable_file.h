// Files that are there whole or not at all.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace mega::checkpoint {

// The folder and those above it that are missing; all of them are still there after a power loss.
absl::Status MakeFolderDurably(const std::string& folder);
// The name a file has until RenameInto.
std::string TemporaryName(const std::string& path);
// Renames TemporaryName(path) to path and syncs the folder.
absl::Status RenameInto(const std::string& path);
absl::Status WriteFileDurably(const std::string& path, std::string_view bytes);

}  // namespace mega::checkpoint
