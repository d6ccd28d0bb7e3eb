// Files as this module reads and writes them: handles that close themselves, errors with the path.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/status.h"

namespace mega::datasets {

class File {
 public:
  // NOT_FOUND and the like name the path; a folder is refused.
  static absl::StatusOr<File> OpenToRead(const std::string& path);
  // Created or emptied.
  static absl::StatusOr<File> OpenToWrite(const std::string& path);

  File(File&& other) noexcept : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~File();

  const std::string& path() const { return path_; }
  int fd() const { return fd_; }
  absl::StatusOr<int64_t> Size() const;
  // Fills all of `out`; DATA_LOSS when the file ends before.
  absl::Status ReadAt(int64_t offset, std::span<char> out) const;
  // Reads on from where the last Read ended; fewer bytes only at the end of the file.
  absl::StatusOr<size_t> Read(std::span<char> out);
  absl::Status Write(std::span<const char> bytes);
  absl::Status Sync();

 private:
  File(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::string path_;
  int fd_ = -1;
};

// A whole file, read-only in memory.
class Mapping {
 public:
  static absl::StatusOr<Mapping> Of(const File& file);
  Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping();
  std::span<const char> bytes() const { return bytes_; }

 private:
  explicit Mapping(std::span<const char> bytes) : bytes_(bytes) {}
  std::span<const char> bytes_;
};

// Makes `path` name what `from` names; atomic for whoever opens it.
absl::Status Rename(const std::string& from, const std::string& path);

// A name beside `path` that no other process or thread uses.
std::string TemporaryName(const std::string& path);

}  // namespace mega::datasets
