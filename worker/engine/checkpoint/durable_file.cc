#include "worker/engine/checkpoint/durable_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

namespace mega::checkpoint {
namespace {

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

absl::Status SyncFolder(const std::string& folder) {
  const Fd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) return ErrnoStatus(errno, "opening folder " + folder);
  if (fsync(fd.get()) != 0) return ErrnoStatus(errno, "syncing folder " + folder);
  return absl::OkStatus();
}

}  // namespace

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
  const Fd fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (fd.get() < 0) return ErrnoStatus(errno, "creating " + temporary);
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

absl::StatusOr<std::string> ReadWholeFile(const std::string& path, int64_t max_bytes) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return ErrnoStatus(errno, "opening " + path);
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, "reading the size of " + path);
  if (!S_ISREG(info.st_mode)) return InvalidArgument("{} is not a regular file", path);
  if (info.st_size > max_bytes) {
    return InvalidArgument("{} has {} bytes, more than the {} such a file may have", path,
                           info.st_size, max_bytes);
  }
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
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

}  // namespace mega::checkpoint
