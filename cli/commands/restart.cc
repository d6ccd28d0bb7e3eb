// megactl restart: begin an attempt anew, from the newest checkpoint or an older one.
#include <memory>

#include "cli/commands/command.h"
#include "cli/view/words.h"

namespace mega::cli {
namespace {

struct Options {
  std::string handle;
  int64_t from_step = 0;  // 0: the newest
  bool from_beginning = false;
  Output output = Output::kTable;
};

int Restart(const Shell& shell, const Options& options) {
  ExitOnInterrupt();
  absl::StatusOr<Client> client = shell.Connect();
  if (!client.ok()) return Fail(client.status());
  const auto restarted =
      client->RestartJob(options.handle, options.from_step, options.from_beginning);
  return AnswerJob(restarted, options.output, [](const v1::Job& job) {
    const int64_t step = job.checkpoints().empty() ? 0 : job.checkpoints().rbegin()->step();
    return fmt::format("job {} starts again {}; megactl events -f {} follows it\n",
                       Printable(job.metadata().name()),
                       step == 0 ? "from its beginning" : fmt::format("from step {}", step),
                       Printable(job.uid()));
  });
}

}  // namespace

void AddRestart(Command program, const Shell& shell) {
  Command command = program.AddCommand(
      "restart",
      "End a job's attempt and start another from its newest checkpoint\n"
      "From an older one, or the beginning: later checkpoints are not used any more, and their\n"
      "folders are written over when the job comes by these steps again.",
      "megactl restart shakespeare --from-step 200");
  auto options = std::make_shared<Options>();
  AddJob(command, options->handle).Required();
  const Option step =
      command.AddOption("--from-step", options->from_step, "Of the checkpoint to go on from")
          .AtLeast(1)
          .TypeName("STEP");
  command
      .AddFlag("--from-beginning", options->from_beginning,
               "As the job began: from checkpoint.load, or with new weights")
      .Excludes(step);
  AddOutput(command, options->output, {Output::kTable, Output::kJson, Output::kYaml});
  command.OnRun([&shell, options] { return Restart(shell, *options); });
}

}  // namespace mega::cli
