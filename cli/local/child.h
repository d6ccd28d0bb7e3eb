// A child process: own process group (a terminal's Ctrl-C reaches megactl alone), standard output
// and error in a file, standard input a pipe that ends when we do.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"

namespace mega::cli {

class Child {
 public:
  struct Command {
    std::string program;
    std::vector<std::string> arguments;
    std::string output;             // file, appended to
    std::string error_output = {};  // empty: the same file
  };
  static absl::StatusOr<Child> Start(const Command& command);

  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child();  // kills and reaps what still runs

  pid_t pid() const { return pid_; }
  // Wait status (man 2 waitpid) once it has ended.
  std::optional<int> Poll();
  // Asks it to leave: ends its standard input and sends SIGTERM.
  void Ask();
  // SIGKILL to its group.
  void Kill();
  // Polls until it has ended or the span is over; true when ended.
  bool WaitFor(absl::Duration span);

 private:
  Child(pid_t pid, int stdin_fd) : pid_(pid), stdin_fd_(stdin_fd) {}
  pid_t pid_ = -1;
  int stdin_fd_ = -1;
  std::optional<int> ended_;
};

// "exit code 1", "signal 9".
std::string DescribeWaitStatus(int status);

// Makes this process the parent of its descendants' orphans …
void AdoptOrphans();
// … which it must then reap: those that have ended, `own` children excepted.
void ReapOrphans(const std::vector<pid_t>& own);
// Kills and reaps every process that is still below us, until none is left or the span is over.
// True when none is left.
bool EndAllDescendants(absl::Duration span);

// The last lines of a file, at most `bytes` of it.
std::string TailOfFile(const std::string& path, size_t bytes);

}  // namespace mega::cli
