#include "worker/engine/checkpoint/durable_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <vector>

#include "base/unique_fd.h"

namespace mega::checkpoint {
namespace {

absl::Status SyncFolder(const std::string& folder) {
  const UniqueFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return ErrnoStatus(errno, "opening folder " + folder);
  if (fsync(fd.get()) != 0) return ErrnoStatus(errno, "syncing folder " + folder);
  return absl::OkStatus();
}

}  // namespace

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

absl::Status WriteFileDurably(const std::string& path, std::string_view bytes) {
  const std::string temporary = TemporaryName(path);
  const UniqueFd fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd) return ErrnoStatus(errno, "creating " + temporary);
  while (!bytes.empty()) {
    const ssize_t written = write(fd.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const absl::Status status = ErrnoStatus(errno, "writing " + temporary);
      unlink(temporary.c_str());
      return status;
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  if (fsync(fd.get()) != 0) {
    const absl::Status status = ErrnoStatus(errno, "syncing " + temporary);
    unlink(temporary.c_str());
    return status;
  }
  return RenameInto(path);
}

}  // namespace mega::checkpoint
