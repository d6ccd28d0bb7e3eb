#include "worker/engine/checkpoint/durable_file.h"

#include <errno.h>
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <vector>

#include "base/atomic_file.h"

namespace mega::checkpoint {

absl::Status MakeFolderDurably(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<fs::path> missing;  // the innermost first
  fs::path at = fs::absolute(folder, error).lexically_normal();
  if (!at.has_filename()) at = at.parent_path();  // it ended with a slash
  const fs::path innermost = at;
  for (; !fs::exists(at, error) && at.has_relative_path(); at = at.parent_path()) {
    missing.push_back(at);
  }
  for (auto each = missing.rbegin(); each != missing.rend(); ++each) {
    if (mkdir(each->c_str(), 0777) != 0 && errno != EEXIST) {
      return ErrnoStatus(errno, "creating folder " + each->string());
    }
    MEGA_RETURN_IF_ERROR(SyncFolder(each->parent_path().string()));
  }
  const fs::file_status made = fs::status(innermost, error);
  if (fs::is_directory(made)) return absl::OkStatus();
  // Who gives its part of a checkpoint up takes the folder away, if it is empty.
  if (!fs::exists(made)) return Unavailable("{} was removed while it was made", folder);
  return FailedPrecondition("{} is not a folder; move it away or choose another", folder);
}

std::string TemporaryName(const std::string& path) { return path + ".tmp"; }

absl::Status RenameInto(const std::string& path) {
  const std::string from = TemporaryName(path);
  if (std::rename(from.c_str(), path.c_str()) != 0) {
    return ErrnoStatus(errno, "renaming " + from + " to " + path);
  }
  return SyncFolder(std::filesystem::path(path).parent_path().string());
}

}  // namespace mega::checkpoint
