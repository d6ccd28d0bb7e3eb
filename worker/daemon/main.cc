// mega-worker: flags in, daemon up, signals out.
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <optional>

#include "absl/time/clock.h"
#include "base/atomic_file.h"
#include "base/command_line/command_line.h"
#include "base/descriptor_limit.h"
#include "base/dns_name.h"
#include "base/library_log.h"
#include "base/listen_address.h"
#include "base/log.h"
#include "base/printable.h"
#include "base/standard_output.h"
#include "base/tls/options.h"
#include "base/unique_fd.h"
#include "base/version.h"
#include "worker/daemon/daemon.h"
#include "worker/daemon/probes/checks.h"

namespace mega::daemon {
namespace {

struct Flags {
  Daemon::Options daemon;
  std::optional<std::string> node;
  std::vector<std::string> labels;
  std::string port_file;
  std::string metrics_port_file;
  log::Level log_level = log::Level::kInfo;
  tls::Options tls;
  bool exit_on_stdin_eof = false;
};

void Declare(Program& program, Flags& flags) {
  program.Footer("Exit codes: 0 ended by a signal, 1 failure, 2 usage.");
  program.AddOption("--coordinator", flags.daemon.coordinator, "HOST:PORT of the coordinator")
      .Required();
  program
      .AddOption("--state-dir", flags.daemon.state_dir,
                 "Folder of this worker alone: run directories, logs, worker.json")
      .Required();
  program.AddOption("--node", flags.node, "Name of this node (default: host name)");
  program
      .AddOption("--devices", flags.daemon.devices,
                 "CPU devices to offer, each with its share of the cores (default: one a core)")
      .InRange(1, 4096);
  program
      .AddOption("--listen", flags.daemon.listen,
                 "HOST:PORT for other workers; on loopback, the ranks listen to no other machine")
      .ShowDefault();
  program
      .AddOption("--metrics-listen", flags.daemon.metrics_listen,
                 "HOST:PORT of /metrics; empty: no metrics")
      .ShowDefault();
  program.AddOption("--port-file", flags.port_file, "Gets HOST:PORT once --listen is open");
  program.AddOption("--metrics-port-file", flags.metrics_port_file,
                    "Gets HOST:PORT once /metrics is open");
  program.AddOption("--engine", flags.daemon.engine,
                    "Path of mega-engine (default: beside this program)");
  program.AddOption("--label", flags.labels, "KEY=VALUE of the node; may be repeated");
  program
      .AddOption(
          "--kept-log-bytes", flags.daemon.kept_logs.bytes,
          "Logs of jobs that have ended are removed, the oldest first, beyond this many bytes "
          "of logs or 1000 jobs")
      .InRange(0, int64_t{1} << 50)
      .ShowDefault();
  AddLogLevel(program, flags.log_level);
  tls::AddOptions(program, flags.tls);
  tls::AddMetricsOption(program, flags.tls);
  program.AddFlag("--exit-on-stdin-eof", flags.exit_on_stdin_eof,
                  "Leave when standard input ends: a parent that dies takes this worker with it");
  program.AddVersion(kVersion);
}

absl::Status CheckAddresses(const Flags& flags) {
  const auto check = [](const char* flag, const absl::StatusOr<ListenAddress>& address,
                        bool is_allowed, std::string_view remedy) {
    return address.ok() ? CheckPlainTextAllowed(flag, *address, is_allowed, remedy)
                        : address.status();
  };
  const Daemon::Options& options = flags.daemon;
  const bool is_allowed = flags.tls.insecure || flags.tls.files.any();
  MEGA_RETURN_IF_ERROR(check("--coordinator",
                             ParseServerAddress("--coordinator", options.coordinator), is_allowed,
                             tls::kRemedy));
  MEGA_RETURN_IF_ERROR(
      check("--listen", ParseListenAddress("--listen", options.listen), is_allowed, tls::kRemedy));
  if (options.metrics_listen.empty()) return absl::OkStatus();
  return check("--metrics-listen", ParseListenAddress("--metrics-listen", options.metrics_listen),
               flags.tls.insecure || flags.tls.insecure_metrics, tls::kMetricsRemedy);
}

absl::Status Complete(Flags& flags) {
  MEGA_RETURN_IF_ERROR(tls::CheckOneAsked(flags.tls));
  MEGA_RETURN_IF_ERROR(CheckAddresses(flags));
  flags.daemon.node = flags.node ? *flags.node : HostName();
  if (!IsHostName(flags.daemon.node)) {
    return InvalidArgument("{} is '{}'; a node's name is {}{}",
                           flags.node ? "--node" : "the name of this machine", flags.daemon.node,
                           kHostNameRule, flags.node ? "" : ". Give another by --node NAME");
  }
  MEGA_ASSIGN_OR_RETURN(
      flags.daemon.identity,
      tls::Load(flags.tls.files, {tls::PeerName::Kind::kNode, flags.daemon.node}, absl::Now()));
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  flags.daemon.probe = {self.string(), "probe"};
  if (flags.daemon.engine.empty()) {
    flags.daemon.engine = (self.parent_path() / "mega-engine").string();
  }
  flags.daemon.engine = std::filesystem::absolute(flags.daemon.engine, error).string();
  if (access(flags.daemon.engine.c_str(), X_OK) != 0) {
    return NotFound("no engine at {}; build the target mega-engine or name it with --engine",
                    flags.daemon.engine);
  }
  for (const std::string& label : flags.labels) {
    const size_t equals = label.find('=');
    if (equals == std::string::npos || equals == 0) {
      return InvalidArgument("--label '{}' is not KEY=VALUE", label);
    }
    flags.daemon.labels[label.substr(0, equals)] = label.substr(equals + 1);
  }
  return absl::OkStatus();
}

enum class Event { kNone, kSignal, kStdinEnd, kFatal };

// Whichever comes first within `timeout_ms` (-1: whatever it takes).
Event WaitForEvent(int signal_fd, bool watch_stdin, int fatal_fd, int timeout_ms) {
  pollfd fds[] = {{signal_fd, POLLIN, 0}, {fatal_fd, POLLIN, 0}, {watch_stdin ? 0 : -1, POLLIN, 0}};
  while (true) {
    const int ready = poll(fds, 3, timeout_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return Event::kNone;
    if (fds[0].revents != 0) {
      signalfd_siginfo info;
      if (read(signal_fd, &info, sizeof(info)) > 0) return Event::kSignal;
    }
    if (fds[1].revents != 0) return Event::kFatal;
    if (fds[2].revents != 0) {
      char buffer[256];
      const ssize_t got = read(0, buffer, sizeof(buffer));
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return Event::kStdinEnd;
    }
  }
}

absl::Status Serve(const Flags& flags, int signal_fd) {
  const SystemClock clock;
  MEGA_ASSIGN_OR_RETURN(const std::unique_ptr<Daemon> daemon, Daemon::Start(flags.daemon, clock));
  for (const auto& [file, address] :
       {std::pair(flags.port_file, daemon->address()),
        std::pair(flags.metrics_port_file, daemon->metrics_address())}) {
    if (!file.empty()) MEGA_RETURN_IF_ERROR(WriteFileAtomically(file, address + "\n"));
  }
  log::Info("worker is up", {{"node", flags.daemon.node},
                             {"address", daemon->address()},
                             {"metrics", daemon->metrics_address()},
                             {"coordinator", flags.daemon.coordinator}});

  const Event event = WaitForEvent(signal_fd, flags.exit_on_stdin_eof, daemon->fatal_fd(), -1);
  const std::string reason = event == Event::kFatal      ? "the coordinator refuses this worker"
                             : event == Event::kStdinEnd ? "the parent of the worker ended"
                                                         : "the worker was told to leave";
  log::Info("leaving", {{"why", reason}});
  daemon->BeginShutdown(reason);
  const absl::Time give_up = absl::Now() + flags.daemon.grace + absl::Seconds(6);
  bool killed = false;
  while (!daemon->WaitDrained(absl::Milliseconds(20))) {
    // A second signal shortens the grace.
    if (!killed && WaitForEvent(signal_fd, false, -1, 0) == Event::kSignal) {
      killed = true;
      daemon->KillRanks();
    }
    if (absl::Now() > give_up) {
      return FailedPrecondition(
          "ranks have not ended in time: one outlives SIGKILL, or the disk of the state folder "
          "hangs; the next worker ends them");
    }
  }
  daemon->Goodbye(reason);
  return event == Event::kFatal ? daemon->fatal() : absl::OkStatus();
}

int Main(int argc, char** argv) {
  // A child of a worker (probes/): in and out, before anything else is there.
  if (argc == 3 && std::string_view(argv[1]) == "probe") return RunCheck(argv[2]);
  Flags flags;
  Program program(
      "mega-worker",
      "Owns the devices of one node and runs a mega-engine for every rank that the coordinator\n"
      "places here. When its lease is not renewed it ends its ranks.",
      "mega-worker --coordinator 127.0.0.1:7070 --state-dir /var/lib/mega-worker");
  Declare(program, flags);
  if (const auto code = program.Parse(argc, argv)) return *code;
  log::Init("worker", flags.log_level);
  RaiseDescriptorLimit();
  LogLibrariesAtDebug();
  const absl::Status usage = Complete(flags);
  if (!usage.ok()) {
    TellError("mega-worker", usage);
    return absl::IsInvalidArgument(usage) ? 2 : 1;
  }
  // Blocked before the first thread exists, so that only the descriptor sees them.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int s : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, s);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes is then like a full disk
  const UniqueFd signal_fd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));

  const absl::Status status = Serve(flags, signal_fd.get());
  if (status.ok()) return 0;
  TellError("mega-worker", status);
  return 1;
}

}  // namespace
}  // namespace mega::daemon

int main(int argc, char** argv) {
  return mega::WithStandardOutput("mega-worker", [=] { return mega::daemon::Main(argc, argv); });
}
