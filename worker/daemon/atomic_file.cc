#include "worker/daemon/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>

#include "worker/daemon/unique_fd.h"

namespace mega::daemon {

absl::Status WriteFileAtomically(const std::string& path, std::string_view content) {
  const std::string temporary = path + ".tmp";
  UniqueFd file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file) return ErrnoStatus(errno, fmt::format("cannot create {}", temporary));
  while (!content.empty()) {
    const ssize_t written = write(file.get(), content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, fmt::format("cannot write {}", temporary));
    content.remove_prefix(static_cast<size_t>(written));
  }
  if (fsync(file.get()) != 0) return ErrnoStatus(errno, fmt::format("cannot sync {}", temporary));
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    return ErrnoStatus(errno, fmt::format("cannot rename {} to {}", temporary, path));
  }
  const std::string folder = std::filesystem::absolute(path).parent_path().string();
  UniqueFd directory(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory || fsync(directory.get()) != 0) {
    return ErrnoStatus(errno, fmt::format("cannot sync the folder {}", folder));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t max_bytes) {
  UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return ErrnoStatus(errno, fmt::format("cannot open {}", path));
  std::string content;
  char buffer[16384];
  while (true) {
    const ssize_t got = read(file.get(), buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, fmt::format("cannot read {}", path));
    if (got == 0) return content;
    content.append(buffer, static_cast<size_t>(got));
    if (content.size() > max_bytes) {
      return DataLoss("{} holds more than {} bytes, which no such file of ours does", path,
                      max_bytes);
    }
  }
}

}  // namespace mega::daemon
