// What lies in a folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"

namespace mega {

// All entries, in no order; NOT_FOUND when there is no such folder. Nothing is thrown, whichever
// entry it is at which the disk fails: a range-for over fs::directory_iterator throws from the
// second one on, whatever its constructor was given.
absl::StatusOr<std::vector<std::filesystem::directory_entry>> ListFolder(const std::string& path);

}  // namespace mega
