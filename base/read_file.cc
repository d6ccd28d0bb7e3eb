#include "base/read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

namespace mega {

absl::StatusOr<UniqueFd> OpenRegularFile(const std::string& path, int64_t* size) {
  // O_NONBLOCK: opening a pipe without a writer would wait for one. It changes nothing for files.
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return ErrnoStatus(errno, "opening " + path);
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, "reading the size of " + path);
  if (!S_ISREG(info.st_mode)) return InvalidArgument("{} is not a regular file", path);
  if (size != nullptr) *size = static_cast<int64_t>(info.st_size);
  return fd;
}

absl::StatusOr<std::string> ReadRegularFile(const std::string& path, int64_t max_bytes) {
  int64_t size = 0;
  MEGA_ASSIGN_OR_RETURN(const UniqueFd fd, OpenRegularFile(path, &size));
  if (size > max_bytes) {
    return InvalidArgument("{} has {} bytes, more than the {} such a file may have", path, size,
                           max_bytes);
  }
  std::string bytes(static_cast<size_t>(size), '\0');
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = read(fd.get(), bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, "reading " + path);
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  bytes.resize(filled);
  return bytes;
}

}  // namespace mega
