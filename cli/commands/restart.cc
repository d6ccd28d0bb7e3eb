// megactl restart: begin an attempt anew, from the newest checkpoint.
#include <memory>

#include "cli/commands/command.h"
#include "cli/view/words.h"

namespace mega::cli {
namespace {

struct Options {
  std::string handle;
  Output output = Output::kTable;
};

int Restart(const Shell& shell, const Options& options) {
  ExitOnInterrupt();
  absl::StatusOr<Client> client = shell.Connect();
  if (!client.ok()) return Fail(client.status());
  return AnswerJob(client->RestartJob(options.handle), options.output, [](const v1::Job& job) {
    const int64_t step = job.checkpoints().empty() ? 0 : job.checkpoints().rbegin()->step();
    return fmt::format("job {} starts again {}; megactl events -f {} follows it\n",
                       Printable(job.metadata().name()),
                       step == 0 ? "from its beginning" : fmt::format("from step {}", step),
                       job.uid());
  });
}

}  // namespace

void AddRestart(Command program, const Shell& shell) {
  Command command = program.AddCommand(
      "restart", "End a job's attempt and start another from its newest checkpoint",
      "megactl restart shakespeare");
  auto options = std::make_shared<Options>();
  AddJob(command, options->handle).Required();
  AddOutput(command, options->output, {Output::kTable, Output::kJson, Output::kYaml});
  command.OnRun([&shell, options] { return Restart(shell, *options); });
}

}  // namespace mega::cli
