// A real program in a test: started, watched, signalled by its own pid, and never left behind.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace mega::e2e {

using Seconds = std::chrono::duration<double>;

// A folder of its own for one test, removed at the end (kept when the test has failed).
class TempDir {
 public:
  explicit TempDir(bool keep_on_failure = true);
  ~TempDir();
  const std::filesystem::path& path() const { return path_; }

 private:
  const bool keep_on_failure_;
  std::filesystem::path path_;
};

// Polls every few milliseconds. False when the time is over.
bool Eventually(const std::function<bool()>& condition, Seconds within);

class Process {
 public:
  struct Options {
    std::vector<std::string> argv;
    std::filesystem::path output;               // stdout and stderr
    std::filesystem::path directory;            // working directory; empty: the test's
    std::vector<std::string> environment = {};  // added, "K=V"
  };
  explicit Process(Options options);
  ~Process();  // SIGKILL if it still runs
  Process(Process&&) = delete;

  pid_t pid() const { return pid_; }
  bool Running();
  void Signal(int signal);
  struct Exit {
    int code = -1;  // -1 when ended by a signal
    int signal = 0;
  };
  // Nothing when it does not end in time.
  std::optional<Exit> Wait(Seconds within);
  std::string Output() const;

 private:
  Options options_;
  pid_t pid_ = -1;
  std::optional<Exit> exit_;
};

struct Result {
  int code = -1;
  std::string out;  // stdout and stderr
};
// Runs to its end; fails the test (code -1) after `within`.
Result RunProgram(std::vector<std::string> argv, Seconds within = Seconds(60),
                  std::filesystem::path directory = {});

std::string ReadFile(const std::filesystem::path& path);
void WriteFile(const std::filesystem::path& path, const std::string& text);

// Pids of live processes (zombies left out) whose command line contains `text`.
std::vector<pid_t> PidsWith(const std::string& text);

}  // namespace mega::e2e
