// mega-coordinator: serve (the default), replay, version.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <iostream>
#include <string>

#include "absl/time/clock.h"
#include "base/atomic_file.h"
#include "base/command_line/command_line.h"
#include "base/descriptor_limit.h"
#include "base/library_log.h"
#include "base/log.h"
#include "base/printable.h"
#include "base/standard_output.h"
#include "base/tls/options.h"
#include "base/version.h"
#include "coordinator/service/coordinator.h"
#include "coordinator/service/replay.h"

namespace mega {
namespace {

constexpr char kExitCodes[] =
    "Exit codes: 0 stopped as asked, 1 cannot start, 2 usage, 3 the store failed, 4 a replay "
    "differs.";

enum ExitCode : int { kOk = 0, kCannotStart = 1, kUsage = 2, kStoreFailed = 3, kDiffers = 4 };

constexpr absl::Duration kLongestRetention = absl::Hours(24 * 365 * 100);

struct ServeFlags {
  service::CoordinatorOptions options;
  tls::Options tls;
  std::string port_file;
  std::string metrics_port_file;
  std::string lease = "10s";
  std::string outage_grace = "30m";
  std::string job_retention = "720h";
  std::string node_retention = "24h";
  log::Level log_level = log::Level::kInfo;
  bool exit_on_stdin_eof = false;
};

absl::StatusOr<absl::Duration> ParseSpan(std::string_view flag, const std::string& text,
                                         absl::Duration most = absl::Hours(24)) {
  absl::Duration span;
  if (!absl::ParseDuration(text, &span) || span <= absl::ZeroDuration() || span > most) {
    return InvalidArgument("{} is '{}'; write a duration such as 500ms, 10s or 30m, at most {}",
                           flag, text, absl::FormatDuration(most));
  }
  return span;
}

absl::Status FillDurations(const ServeFlags& flags, core::Options* core) {
  MEGA_ASSIGN_OR_RETURN(core->lease, ParseSpan("--lease", flags.lease));
  MEGA_ASSIGN_OR_RETURN(core->outage_grace, ParseSpan("--outage-grace", flags.outage_grace));
  MEGA_ASSIGN_OR_RETURN(core->job_retention,
                        ParseSpan("--job-retention", flags.job_retention, kLongestRetention));
  MEGA_ASSIGN_OR_RETURN(core->node_retention,
                        ParseSpan("--node-retention", flags.node_retention, kLongestRetention));
  if (core->lease < 3 * core->heartbeat) {
    return InvalidArgument(
        "--lease is {}, but workers renew every {} and a lease must outlast three renewals, so "
        "that "
        "one lost message ends no job; choose {} or more",
        flags.lease, absl::FormatDuration(core->heartbeat),
        absl::FormatDuration(3 * core->heartbeat));
  }
  core->suspect = std::min(core->lease, 3 * core->heartbeat);
  return absl::OkStatus();
}

// Until SIGTERM, SIGINT, or the end of stdin when that counts.
void WaitForStop(int signals, bool watch_stdin) {
  pollfd fds[2] = {{signals, POLLIN, 0}, {watch_stdin ? STDIN_FILENO : -1, POLLIN, 0}};
  while (true) {
    if (poll(fds, 2, -1) < 0) continue;
    if (fds[0].revents != 0) {
      signalfd_siginfo info{};
      if (read(signals, &info, sizeof(info)) != sizeof(info)) continue;
      log::Info("stopping; jobs go on running", {{"signal", info.ssi_signo}});
      return;
    }
    if (fds[1].revents != 0) {
      char buffer[256];
      if (read(STDIN_FILENO, buffer, sizeof(buffer)) > 0) continue;
      log::Info("stopping: stdin has ended");
      return;
    }
  }
}

int CannotStart(const absl::Status& status) {
  TellError("mega-coordinator", status);
  return status.code() == absl::StatusCode::kInvalidArgument ? kUsage : kCannotStart;
}

int Serve(ServeFlags flags) {
  log::Init("coordinator", flags.log_level);
  RaiseDescriptorLimit();
  LogLibrariesAtDebug();
  if (absl::Status status = FillDurations(flags, &flags.options.core); !status.ok()) {
    return CannotStart(status);
  }
  if (absl::Status status = tls::CheckOneAsked(flags.tls); !status.ok()) return CannotStart(status);
  auto identity = tls::Load(flags.tls.files, {tls::PeerName::Kind::kCoordinator, ""}, absl::Now());
  if (!identity.ok()) return CannotStart(identity.status());
  flags.options.identity = *std::move(identity);
  flags.options.insecure = flags.tls.insecure;
  flags.options.insecure_metrics = flags.tls.insecure_metrics;
  // Before any thread starts, so that all inherit the mask and only the descriptor gets them.
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  sigaddset(&stop, SIGINT);
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes is then like a full disk
  const int signals = signalfd(-1, &stop, SFD_CLOEXEC);
  if (signals < 0) return CannotStart(ErrnoStatus(errno, "signalfd"));

  flags.options.failed = [state_dir = flags.options.state_dir](const absl::Status& status) {
    log::Error(
        "the store failed; stopping at once, for nothing may be promised any more. Make room on "
        "the disk of --state-dir (or see to what the error says), then start again: all that was "
        "acknowledged is there, and jobs go on running meanwhile",
        {{"state_dir", state_dir}, {"error", status.ToString()}});
    std::_Exit(kStoreFailed);
  };
  flags.options.listening = [](const std::string& address) {
    log::Info("listening; the state is being loaded", {{"address", address}});
  };
  auto coordinator = service::Coordinator::Start(flags.options);
  if (!coordinator.ok()) {
    const int code = CannotStart(coordinator.status());
    const bool is_of_store =
        absl::IsDataLoss(coordinator.status()) || absl::IsResourceExhausted(coordinator.status());
    return is_of_store ? kStoreFailed : code;
  }
  log::Info("serving", {{"address", (*coordinator)->address()},
                        {"metrics", (*coordinator)->metrics_address()},
                        {"state", flags.options.state_dir},
                        {"version", kVersion}});
  for (const auto& [path, address] :
       {std::pair(flags.metrics_port_file, (*coordinator)->metrics_address()),
        std::pair(flags.port_file, (*coordinator)->address())}) {
    if (path.empty()) continue;
    if (absl::Status status = WriteFileAtomically(path, address + "\n"); !status.ok())
      return CannotStart(status);
  }
  WaitForStop(signals, flags.exit_on_stdin_eof);
  return kOk;
}

int RunReplay(const std::string& folder, int64_t from) {
  const auto result = service::Replay(folder, from, std::cout);
  if (!result.ok()) return CannotStart(result.status());
  std::cout << fmt::format("{} inputs of {} segments decided again, {} otherwise, {} left out\n",
                           result->inputs, result->segments, result->differences, result->left_out);
  return result->differences == 0 ? kOk : kDiffers;
}

void AddServeFlags(Command program, ServeFlags& flags) {
  service::CoordinatorOptions& options = flags.options;
  program.AddOption("--state-dir", options.state_dir,
                    "Folder of the durable state and the journal");
  program.AddOption("--listen", options.listen, "HOST:PORT of the API; port 0 takes a free one")
      .ShowDefault();
  program.AddOption("--port-file", flags.port_file, "Written with HOST:PORT once serving");
  program
      .AddOption("--metrics-listen", options.metrics_listen,
                 "HOST:PORT of /metrics; empty: no metrics")
      .ShowDefault();
  program.AddOption("--metrics-port-file", flags.metrics_port_file,
                    "Written with HOST:PORT of /metrics");
  program.AddOption("--lease", flags.lease, "Without renewal a worker ends its ranks after this")
      .ShowDefault();
  program
      .AddOption("--outage-grace", flags.outage_grace,
                 "Ranks may outlive a coordinator outage this long (in force with witnesses)")
      .ShowDefault();
  program
      .AddOption("--job-retention", flags.job_retention,
                 "An ended job is forgotten after this, with its events and steps; its checkpoints "
                 "stay")
      .ShowDefault();
  program
      .AddOption("--most-ended-jobs", options.core.most_ended_jobs,
                 "The oldest ended jobs beyond these are forgotten earlier")
      .ShowDefault()
      .InRange(0, 100'000'000);
  program
      .AddOption("--node-retention", flags.node_retention,
                 "A node that was lost and not cordoned is forgotten after this")
      .ShowDefault();
  program.AddOption("--journal-bytes", options.journal_bytes, "Bound of the journal; 0: none")
      .ShowDefault()
      .InRange(0, int64_t{1} << 44);
  program.AddFlag("--accept-lost-state", options.accept_lost_state,
                  "Start although changes that were acknowledged are missing from --state-dir");
  tls::AddOptions(program, flags.tls);
  program
      .AddOption("--access", options.access_file,
                 "Says which user may do what in which namespace; left out: each may do everything")
      .TypeName("FILE")
      // That of a variable that is not set would let everybody do everything.
      .Check([](const std::string& text) {
        return text.empty() ? "--access is empty; give a file, or leave it out" : "";
      });
  tls::AddMetricsOption(program, flags.tls);
  AddLogLevel(program, flags.log_level);
  program.AddFlag("--exit-on-stdin-eof", flags.exit_on_stdin_eof, "Stop when stdin ends");
}

int Main(int argc, char** argv) {
  Program program(
      "mega-coordinator",
      "Accepts training jobs, plans them, gives their ranks to workers and keeps them running.",
      "mega-coordinator --state-dir /var/lib/mega --listen 127.0.0.1:7070");
  program.Footer(kExitCodes);
  ServeFlags flags;
  AddServeFlags(program, flags);
  program.AddCommand("serve", "Serve (the default)",
                     "mega-coordinator serve --state-dir /var/lib/mega");
  Command version = program.AddCommand("version", "Print the release", "mega-coordinator version");
  Command replay = program.AddCommand(
      "replay",
      "Runs the journal's inputs through the core again and compares every decision with the "
      "recorded one",
      "mega-coordinator replay /var/lib/mega");
  std::string folder;
  int64_t from = 0;
  replay.AddOption("DIR", folder, "State folder, or the journal in it").Required();
  replay.AddOption("--from", from, "Compare from this input on").AtLeast(0);
  if (const auto code = program.Parse(argc, argv)) return *code;
  if (version.WasChosen()) {
    WriteStandardOutput(fmt::format("mega-coordinator {}\n", kVersion));
    return kOk;
  }
  if (replay.WasChosen()) return RunReplay(folder, from);
  return Serve(std::move(flags));
}

}  // namespace
}  // namespace mega

int main(int argc, char** argv) {
  return mega::WithStandardOutput("mega-coordinator", [=] { return mega::Main(argc, argv); });
}
