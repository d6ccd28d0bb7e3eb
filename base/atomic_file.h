// A small file that is either the old one or the new one, whatever happens meanwhile.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace mega {

// Temporary file beside it → fsync → rename → fsync of the folder. One writer at a time. A failure
// leaves nothing beside the old file.
absl::Status WriteFileAtomically(const std::string& path, std::string_view content);

// What was made, renamed or removed in it is still so after a power loss.
absl::Status SyncFolder(const std::string& folder);

}  // namespace mega
