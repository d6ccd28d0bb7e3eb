// Between fork and exec only async-signal-safe calls: other threads may hold any lock.
#include "worker/daemon/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/proc_stat.h"

namespace mega::daemon {
namespace {

// A program on a hung file system must not hang its supervisor.
constexpr int kExecWaitMs = 2000;
constexpr int kGateFd = 3;  // in the child

int PidfdOpen(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  out.reserve(strings.size() + 1);
  for (const std::string& s : strings) out.push_back(const_cast<char*>(s.c_str()));
  out.push_back(nullptr);
  return out;
}

struct Pipe {
  UniqueFd read_end, write_end;
};
absl::StatusOr<Pipe> MakePipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot make a pipe");
  // A burst of output should not stop the training step; failing to grow the pipe is harmless.
  fcntl(fds[1], F_SETPIPE_SZ, 1 << 20);
  return Pipe{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

void CloseAllFrom(unsigned first) {
  if (syscall(SYS_close_range, first, ~0U, 0) == 0) return;
  for (unsigned fd = first; fd < 65536; ++fd) close(static_cast<int>(fd));
}

[[noreturn]] void RunChild(int null_fd, int stdout_fd, int stderr_fd, int gate_fd,
                           const char* directory, char* const* argv, char* const* environment) {
  setsid();  // own session and process group: no terminal's signal reaches it
  // Above the low numbers first, so that none of the dup2 below overwrites another one's source.
  const int moved_null = fcntl(null_fd, F_DUPFD, 10);
  const int moved_out = fcntl(stdout_fd, F_DUPFD, 10);
  const int moved_err = fcntl(stderr_fd, F_DUPFD, 10);
  const int moved_gate = fcntl(gate_fd, F_DUPFD, 10);
  dup2(moved_null, 0);
  dup2(moved_out, 1);
  dup2(moved_err, 2);
  dup2(moved_gate, kGateFd);
  fcntl(kGateFd, F_SETFD, FD_CLOEXEC);
  CloseAllFrom(kGateFd + 1);

  char go = 0;
  ssize_t got;
  do {
    got = read(kGateFd, &go, 1);
  } while (got < 0 && errno == EINTR);
  if (got != 1) _exit(127);  // the parent is gone

  // When memory runs out the kernel should take a rank, which can be started again, and not its
  // supervisor.
  const int oom = open("/proc/self/oom_score_adj", O_WRONLY);
  if (oom >= 0) {
    if (write(oom, "500", 3) < 0) {
      // An old kernel or a container's rule; the rank runs all the same.
    }
    close(oom);
  }
  for (int s = 1; s < NSIG; ++s) signal(s, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);

  if (chdir(directory) == 0) execve(argv[0], argv, environment);
  const int error = errno;
  if (write(kGateFd, &error, sizeof(error)) < 0) _exit(126);
  _exit(127);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Process>> Process::Fork(const Options& options) {
  std::unique_ptr<Process> process(new Process);
  process->program_ = options.argv.at(0);
  MEGA_ASSIGN_OR_RETURN(Pipe out, MakePipe());
  MEGA_ASSIGN_OR_RETURN(Pipe err, MakePipe());
  UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) return ErrnoStatus(errno, "cannot open /dev/null");
  int gate[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, gate) != 0) {
    return ErrnoStatus(errno, "cannot make a socket pair");
  }
  process->gate_ = UniqueFd(gate[0]);
  UniqueFd child_gate(gate[1]);

  const std::vector<char*> argv = Pointers(options.argv);
  const std::vector<char*> environment = Pointers(options.environment);
  const pid_t pid = fork();
  if (pid < 0) return ErrnoStatus(errno, fmt::format("cannot fork for {}", process->program_));
  if (pid == 0) {
    RunChild(null.get(), out.write_end.get(), err.write_end.get(), child_gate.get(),
             options.directory.c_str(), argv.data(), environment.data());
  }
  process->pid_ = pid;
  process->stdout_ = std::move(out.read_end);
  process->stderr_ = std::move(err.read_end);
  process->pidfd_ = UniqueFd(PidfdOpen(pid));
  if (!process->pidfd_) return ErrnoStatus(errno, "pidfd_open (Linux 5.3 or newer is needed)");
  process->start_time_ticks_ = StartTimeTicks(pid);
  return process;
}

Process::~Process() {
  if (pid_ < 0 || reaped_) return;
  gate_.reset();
  Signal(SIGKILL);
  // A process in uninterruptible sleep is left to init rather than waited for without end.
  pollfd ended{pidfd_.get(), POLLIN, 0};
  if (!pidfd_ || poll(&ended, 1, 1000) == 1) Reap();
}

absl::Status Process::Release() {
  const char go = 1;
  if (send(gate_.get(), &go, 1, MSG_NOSIGNAL) != 1) {
    return ErrnoStatus(errno, fmt::format("{} ended before it could start", program_));
  }
  pollfd answer{gate_.get(), POLLIN, 0};
  int error = 0;
  const bool answered = poll(&answer, 1, kExecWaitMs) == 1;
  const bool failed =
      answered && recv(gate_.get(), &error, sizeof(error), MSG_DONTWAIT) == sizeof(error);
  gate_.reset();
  if (failed) return ErrnoStatus(error, fmt::format("cannot execute {}", program_));
  return absl::OkStatus();
}

void Process::Signal(int signal) {
  if (pid_ <= 0 || reaped_) return;
  // Not yet reaped, so neither number can have passed to somebody else. Both, because a child that
  // has just been forked may not lead its group yet.
  kill(-pid_, signal);
  kill(pid_, signal);
}

std::optional<ProcessExit> Process::Reap() {
  if (reaped_) return std::nullopt;
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid == 0) {
    return std::nullopt;
  }
  kill(-pid_, SIGKILL);  // while the dead leader still keeps the group's number for us
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG) != 0) return std::nullopt;
  reaped_ = true;
  ProcessExit exit;
  if (info.si_code == CLD_EXITED) {
    exit.code = info.si_status;
  } else {
    exit.signal = info.si_status;
  }
  return exit;
}

}  // namespace mega::daemon
