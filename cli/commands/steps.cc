// megactl steps: the optimizer steps of a job, each once.
#include <memory>

#include "base/command_line/command_line.h"
#include "cli/commands/command.h"
#include "cli/commands/follow.h"
#include "cli/view/step_line.h"

namespace mega::cli {
namespace {

struct Options {
  std::string handle;
  bool follow = false;
  int64_t from = 1;
  Output output = Output::kTable;
};

int Steps(const Shell& shell, const Options& options) {
  ExitOnInterrupt();
  absl::StatusOr<Client> client = shell.Connect();
  if (!client.ok()) return Fail(client.status());
  const absl::StatusOr<v1::Job> job = client->GetJob(options.handle);
  if (!job.ok()) return Fail(job.status());

  v1::StreamStepsRequest request;
  request.set_name(job->name());
  request.set_from_step(options.from);
  request.set_follow(options.follow);
  const absl::Status status =
      Follow<v1::StepReport>([&] { return client->StreamSteps(request); },
                             [&](const v1::StepReport& report) {
                               request.set_from_step(report.step() + 1);
                               return PrintStdout(StreamedMessage(
                                   report, options.output, [&] { return StepLine(report); }));
                             },
                             options.follow);
  return status.ok() ? kExitOk : Fail(status);
}

}  // namespace

void AddSteps(Command program, const Shell& shell) {
  Command command = program.AddCommand("steps", "Show the steps of a job: loss, speed",
                                       "megactl steps -f shakespeare -o json | jq .loss");
  auto options = std::make_shared<Options>();
  AddJob(command, options->handle).Required();
  command.AddFlag("-f,--follow", options->follow, "Go on until the job ends");
  command.AddOption("--from", options->from, "First step to show").AtLeast(1).TypeName("STEP");
  AddOutput(command, options->output, {Output::kTable, Output::kJson, Output::kYaml});
  command.OnRun([&shell, options] { return Steps(shell, *options); });
}

}  // namespace mega::cli
