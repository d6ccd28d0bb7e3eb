// A child process in a session of its own, held at a gate until it may run: its pid can be written
// down durably before it executes a single instruction of its program. If the parent dies
// meanwhile, the child leaves.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"

namespace mega::daemon {

// code:signal as the kernel said it; one of the two is 0.
struct ProcessExit {
  int code = 0;
  int signal = 0;
};

class Process {
 public:
  struct Options {
    std::vector<std::string> argv;         // [0] is the path of the program
    std::vector<std::string> environment;  // NAME=value, nothing is inherited
    std::string directory;
  };

  // Forks. stdin is /dev/null, stdout and stderr are pipes, all other descriptors close.
  static absl::StatusOr<std::unique_ptr<Process>> Fork(const Options& options);

  // Kills and reaps what still runs.
  ~Process();

  // Opens the gate. An error says why the program cannot be executed; the child then exits 127.
  absl::Status Release();

  pid_t pid() const { return pid_; }
  int64_t start_time_ticks() const { return start_time_ticks_; }
  int pidfd() const { return pidfd_.get(); }  // readable once the process has ended
  // Reading ends; each can be taken once.
  UniqueFd TakeStdout() { return std::move(stdout_); }
  UniqueFd TakeStderr() { return std::move(stderr_); }

  // To the whole process group. Nothing after the process was reaped.
  void Signal(int signal);

  // Reaps without waiting; kills what is left of the group first. Empty while it runs.
  std::optional<ProcessExit> Reap();

 private:
  Process() = default;

  pid_t pid_ = -1;
  int64_t start_time_ticks_ = 0;
  bool reaped_ = false;
  std::string program_;
  UniqueFd pidfd_;
  UniqueFd gate_;  // a socket: a byte lets the child go; errno comes back if exec fails
  UniqueFd stdout_;
  UniqueFd stderr_;
};

}  // namespace mega::daemon
