#include "base/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>

#include "base/unique_fd.h"

namespace mega {

absl::Status WriteFileAtomically(const std::string& path, std::string_view content) {
  const std::string temporary = path + ".tmp";
  const UniqueFd file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (file.get() < 0) return ErrnoStatus(errno, fmt::format("cannot create {}", temporary));
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
  const UniqueFd directory(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0 || fsync(directory.get()) != 0) {
    return ErrnoStatus(errno, fmt::format("cannot sync the folder {}", folder));
  }
  return absl::OkStatus();
}

}  // namespace mega
