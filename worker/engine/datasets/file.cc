#include "worker/engine/datasets/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

#include "base/write_all.h"

namespace mega::datasets {

absl::StatusOr<File> File::OpenToRead(const std::string& path) {
  // O_NONBLOCK: opening a pipe without a writer would wait for one.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return ErrnoStatus(errno, path + " cannot be read");
  File file(path, fd);
  struct stat info;
  if (::fstat(fd, &info) != 0) return ErrnoStatus(errno, path + " cannot be read");
  if (!S_ISREG(info.st_mode))
    return InvalidArgument("{} is not a file; give a text, JSONL or .bin/.idx file", path);
  return file;
}

absl::StatusOr<File> File::OpenToWrite(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoStatus(errno, path + " cannot be written");
  return File(path, fd);
}

File::~File() {
  if (fd_ >= 0) ::close(fd_);
}

absl::StatusOr<int64_t> File::Size() const {
  struct stat info;
  if (::fstat(fd_, &info) != 0) return ErrnoStatus(errno, path_);
  return static_cast<int64_t>(info.st_size);
}

absl::Status File::ReadAt(int64_t offset, std::span<char> out) const {
  while (!out.empty()) {
    const ssize_t n = ::pread(fd_, out.data(), out.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, path_ + " cannot be read");
    if (n == 0)
      return DataLoss("{} ends before byte {}; it was cut after it was opened", path_,
                      offset + static_cast<int64_t>(out.size()));
    offset += n;
    out = out.subspan(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> File::Read(std::span<char> out) {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t n = ::read(fd_, out.data() + done, out.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, path_ + " cannot be read");
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

absl::Status File::Write(std::span<const char> bytes) {
  const int error = WriteAll(fd_, {bytes.data(), bytes.size()});
  return error == 0 ? absl::OkStatus() : ErrnoStatus(error, path_ + " cannot be written");
}

absl::Status File::Sync() {
  if (::fsync(fd_) != 0) return ErrnoStatus(errno, path_ + " cannot be written");
  return absl::OkStatus();
}

absl::StatusOr<Mapping> Mapping::Of(const File& file) {
  MEGA_ASSIGN_OR_RETURN(const int64_t size, file.Size());
  if (size == 0) return Mapping(std::span<const char>());  // mmap refuses empty files
  void* data = ::mmap(nullptr, static_cast<size_t>(size), PROT_READ, MAP_PRIVATE, file.fd(), 0);
  if (data == MAP_FAILED) return ErrnoStatus(errno, file.path() + " cannot be mapped");
  return Mapping({static_cast<const char*>(data), static_cast<size_t>(size)});
}

Mapping::~Mapping() {
  if (!bytes_.empty()) ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

absl::Status Rename(const std::string& from, const std::string& path) {
  if (std::rename(from.c_str(), path.c_str()) != 0)
    return ErrnoStatus(errno, path + " cannot be written");
  return absl::OkStatus();
}

std::string TemporaryName(const std::string& path) {
  static std::atomic<int64_t> count{0};
  return fmt::format("{}.{}.{}.tmp", path, ::getpid(), count.fetch_add(1));
}

}  // namespace mega::datasets
