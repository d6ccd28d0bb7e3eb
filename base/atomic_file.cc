#include "base/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>

#include "base/unique_fd.h"
#include "base/write_all.h"

namespace mega {
namespace {

absl::Status WriteAndSync(const std::string& path, std::string_view content) {
  // Of a writer that was killed; or a pipe, which would be waited for.
  if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    return ErrnoStatus(errno, fmt::format("cannot create {}", path));
  }
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file) return ErrnoStatus(errno, fmt::format("cannot create {}", path));
  if (const int error = WriteAll(file.get(), content); error != 0) {
    return ErrnoStatus(error, fmt::format("cannot write {}", path));
  }
  if (fsync(file.get()) != 0) return ErrnoStatus(errno, fmt::format("cannot sync {}", path));
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteFileAtomically(const std::string& path, std::string_view content) {
  const std::string temporary = path + ".tmp";
  absl::Status status = WriteAndSync(temporary, content);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = ErrnoStatus(errno, fmt::format("cannot rename {} to {}", temporary, path));
  }
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  return SyncFolder(std::filesystem::absolute(path).parent_path().string());
}

absl::Status SyncFolder(const std::string& folder) {
  const UniqueFd directory(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory || fsync(directory.get()) != 0) {
    return ErrnoStatus(errno, fmt::format("cannot sync the folder {}", folder));
  }
  return absl::OkStatus();
}

}  // namespace mega
