#include "base/standard_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "fmt/core.h"

namespace mega {
namespace {

// Beside ferror(stdout), which says that a write failed and not why. 0: none did, or not through
// WriteStandardOutput.
std::atomic<int> first_error{0};

void KeepError(int error) {
  int none = 0;
  first_error.compare_exchange_strong(none, error);
}

// For the wrong direction, so that whoever uses it is told.
void OpenMissingDescriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free number: this one, for those below it are open.
    if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) return;
  }
}

}  // namespace

bool WriteStandardOutput(std::string_view text) {
  errno = 0;
  const bool is_whole =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!is_whole) KeepError(errno);
  return !StandardOutputFailed();
}

bool StandardOutputFailed() { return std::ferror(stdout) != 0 || first_error != 0; }

int WithStandardOutput(std::string_view program, const std::function<int()>& main) {
  OpenMissingDescriptors();
  const int code = main();
  errno = 0;
  std::cout.flush();
  if (std::fflush(stdout) != 0) KeepError(errno);
  if (!StandardOutputFailed() && std::cout.good()) return code;
  if (first_error != EPIPE) {
    const std::string why =
        first_error != 0 ? fmt::format(": {}", std::strerror(first_error)) : std::string();
    std::cerr << fmt::format("{}: standard output could not be written{}\n", program, why);
  }
  return code == 0 ? kExitOutputFailed : code;
}

}  // namespace mega
