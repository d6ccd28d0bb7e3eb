// A file that lives in memory and has a path, for readers that open files: no disk is touched.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <span>
#include <string>

#include "base/check.h"

namespace mega::fuzz {

class MemoryFile {
 public:
  explicit MemoryFile(const char* name) : fd_(memfd_create(name, MFD_CLOEXEC)) {
    MEGA_CHECK(fd_ >= 0);
  }
  ~MemoryFile() { close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

  void Set(std::span<const char> bytes) {
    MEGA_CHECK_EQ(ftruncate(fd_, 0), 0);
    MEGA_CHECK_EQ(pwrite(fd_, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }

 private:
  const int fd_;
};

}  // namespace mega::fuzz
