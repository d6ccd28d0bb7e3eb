#include "cli/local/child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <utility>

#include "absl/time/clock.h"

namespace mega::cli {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(5);

// posix_spawn's two attribute objects, released together.
class SpawnSettings {
 public:
  SpawnSettings() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  void Connect(int from, int to) { posix_spawn_file_actions_adddup2(&actions_, from, to); }
  void Append(const std::string& file, int to) {
    posix_spawn_file_actions_addopen(&actions_, to, file.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                     0644);
  }
  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace

absl::StatusOr<Child> Child::Start(const Command& command) {
  int input[2];
  if (pipe2(input, O_CLOEXEC) != 0) return ErrnoStatus(errno, "pipe");
  SpawnSettings settings;
  settings.Connect(input[0], STDIN_FILENO);
  settings.Append(command.output, STDOUT_FILENO);
  if (command.error_output.empty()) {
    settings.Connect(STDOUT_FILENO, STDERR_FILENO);
  } else {
    settings.Append(command.error_output, STDERR_FILENO);
  }
  std::vector<char*> argv = {const_cast<char*>(command.program.c_str())};
  for (const std::string& argument : command.arguments)
    argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, command.program.c_str(), settings.actions(),
                                settings.attributes(), argv.data(), environ);
  close(input[0]);
  if (error != 0) {
    close(input[1]);
    return ErrnoStatus(error, fmt::format("start of {}", command.program));
  }
  return Child(pid, input[1]);
}

Child::Child(Child&& other) noexcept { *this = std::move(other); }

Child& Child::operator=(Child&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(stdin_fd_, other.stdin_fd_);
  std::swap(ended_, other.ended_);
  return *this;
}

Child::~Child() {
  if (pid_ > 0 && !Poll().has_value()) {
    Kill();
    WaitFor(absl::Seconds(5));
  }
  if (stdin_fd_ >= 0) close(stdin_fd_);
}

std::optional<int> Child::Poll() {
  int status = 0;
  if (pid_ > 0 && !ended_.has_value() && waitpid(pid_, &status, WNOHANG) == pid_) ended_ = status;
  return ended_;
}

void Child::Ask() {
  if (stdin_fd_ >= 0) close(std::exchange(stdin_fd_, -1));
  if (!Poll().has_value()) kill(pid_, SIGTERM);
}

void Child::Kill() {
  // Reaped, its pid may name somebody else.
  if (pid_ > 0 && !Poll().has_value()) kill(-pid_, SIGKILL);
}

bool Child::WaitFor(absl::Duration span) {
  const absl::Time deadline = absl::Now() + span;
  while (!Poll().has_value()) {
    if (absl::Now() >= deadline) return false;
    absl::SleepFor(kPoll);
  }
  return true;
}

std::string DescribeWaitStatus(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal {}", WTERMSIG(status));
  return fmt::format("exit code {}", WEXITSTATUS(status));
}

void AdoptOrphans() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

void ReapOrphans(const std::vector<pid_t>& own) {
  while (true) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    if (std::find(own.begin(), own.end(), info.si_pid) != own.end()) return;
    waitpid(info.si_pid, nullptr, WNOHANG);
  }
}

bool EndAllDescendants(absl::Duration span) {
  const absl::Time deadline = absl::Now() + span;
  const std::string list =
      fmt::format("/proc/{}/task/{}/children", getpid(), static_cast<int>(gettid()));
  while (true) {
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    if (waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD) return true;
    if (absl::Now() >= deadline) return false;
    std::ifstream children(list);
    for (pid_t pid = 0; children >> pid;) kill(pid, SIGKILL);
    absl::SleepFor(kPoll);
  }
}

std::string TailOfFile(const std::string& path, size_t bytes) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  const auto size = static_cast<size_t>(file.tellg());
  const size_t from = size > bytes ? size - bytes : 0;
  file.seekg(static_cast<std::streamoff>(from));
  std::string tail(size - from, '\0');
  file.read(tail.data(), static_cast<std::streamsize>(tail.size()));
  tail.resize(static_cast<size_t>(file.gcount()));
  if (from > 0) tail.erase(0, tail.find('\n') == std::string::npos ? 0 : tail.find('\n') + 1);
  return tail;
}

}  // namespace mega::cli
