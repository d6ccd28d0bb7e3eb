// Folders and large files that are there whole or not at all. Small files: base/atomic_file.h.
#pragma once

#include <string>

#include "base/status.h"

namespace mega::checkpoint {

// The folder and those above it that are missing; all of them are still there after a power loss.
absl::Status MakeFolderDurably(const std::string& folder);
// The name a file has until RenameInto.
std::string TemporaryName(const std::string& path);
// Renames TemporaryName(path) to path and syncs the folder.
absl::Status RenameInto(const std::string& path);

}  // namespace mega::checkpoint
