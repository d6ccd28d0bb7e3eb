// A disk that fails in the middle of a folder, as NFS does when its server forgets the handle: a
// test binary that includes this has a readdir of its own, which libstdc++ then calls.
#pragma once

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>

namespace mega::testing {

// While it lives, this thread gets `entries` entries of folders ("." and ".." count), then EIO.
class FailingReaddir {
 public:
  explicit FailingReaddir(int entries) { left = entries; }
  ~FailingReaddir() { left = kUnlimited; }
  FailingReaddir(const FailingReaddir&) = delete;
  FailingReaddir& operator=(const FailingReaddir&) = delete;

  static constexpr int kUnlimited = -1;
  static inline thread_local int left = kUnlimited;
};

}  // namespace mega::testing

extern "C" inline __attribute__((used)) dirent* readdir(DIR* folder) {
  using mega::testing::FailingReaddir;
  if (FailingReaddir::left == 0) {
    errno = EIO;
    return nullptr;
  }
  if (FailingReaddir::left > 0) --FailingReaddir::left;
  static auto* const real = reinterpret_cast<dirent* (*)(DIR*)>(dlsym(RTLD_NEXT, "readdir"));
  return real(folder);
}
