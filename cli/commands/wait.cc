// megactl wait: until a job has ended; the exit code says how.
#include <memory>

#include "absl/time/clock.h"
#include "base/clock.h"
#include "cli/commands/command.h"
#include "cli/commands/follow.h"
#include "cli/spec/scalar.h"
#include "cli/view/words.h"

namespace mega::cli {
namespace {

constexpr absl::Duration kBetweenLooks = absl::Milliseconds(200);

struct Options {
  std::string handle;
  std::string timeout;
  bool quiet = false;
  Output output = Output::kTable;
};

std::string Ending(const v1::Job& job) {
  const std::string why = job.reason().empty() ? "" : ": " + Printable(job.reason());
  return fmt::format("job {} is {}{}\n", Printable(job.metadata().name()), PhaseName(job.phase()),
                     why);
}

int Wait(const Shell& shell, const Options& options) {
  ExitOnInterrupt();
  absl::Time deadline = absl::InfiniteFuture();
  if (!options.timeout.empty()) {
    const auto timeout = ParseDuration(options.timeout);
    if (!timeout.ok())
      return Fail(InvalidArgument("--timeout '{}' {}", options.timeout,
                                  std::string(timeout.status().message())));
    if (FromProto(*timeout) < absl::ZeroDuration()) {
      return Fail(InvalidArgument(
          "--timeout '{}' is less than nothing; give 0s or more, such as 2h", options.timeout));
    }
    deadline = absl::Now() + FromProto(*timeout);
  }
  absl::StatusOr<Client> client = shell.Connect();
  if (!client.ok()) return Fail(client.status());
  std::string handle = options.handle;
  bool seen = false;
  for (Pause pause;;) {
    const absl::StatusOr<v1::Job> job = client->GetJob(handle);
    if (!job.ok()) {
      if (absl::IsNotFound(job.status())) return Fail(job.status()), kExitJobNotFound;
      // A coordinator that was there may come back; one that never answered is a wrong address.
      const bool healing =
          absl::IsUnavailable(job.status()) || absl::IsDeadlineExceeded(job.status());
      if (!seen || !healing || !pause.Wait()) return Fail(job.status());
      if (absl::Now() >= deadline) return kExitJobNotFinished;
      continue;
    }
    seen = true;
    pause.Reset();
    handle = job->name();
    const bool late = absl::Now() >= deadline;
    if (IsFinal(job->phase()) || late) {
      if (!options.quiet) AnswerJob(job, options.output, Ending);
      return ExitCodeOf(job->phase());
    }
    absl::SleepFor(std::min(kBetweenLooks, deadline - absl::Now()));
  }
}

}  // namespace

void AddWait(Command program, const Shell& shell) {
  Command command = program.AddCommand("wait", "Wait until a job has ended",
                                       "megactl wait shakespeare --timeout 2h && echo trained");
  command.Footer(
      "Exit codes: 0 succeeded, 100 failed, 101 not finished in time, 102 not found, 103 "
      "cancelled;\n6 when the coordinator cannot be reached.");
  auto options = std::make_shared<Options>();
  AddJob(command, options->handle).Required();
  command.AddOption("--timeout", options->timeout, "Give up after 30s, 2h … (default: never)")
      .TypeName("TIME");
  command.AddFlag("-q,--quiet", options->quiet, "Print nothing");
  AddOutput(command, options->output, {Output::kTable, Output::kJson, Output::kYaml});
  command.OnRun([&shell, options] { return Wait(shell, *options); });
}

}  // namespace mega::cli
