// megactl cancel: ask a job to stop.
#include <memory>

#include "cli/commands/command.h"
#include "cli/view/words.h"

namespace mega::cli {
namespace {

struct Options {
  std::string handle;
  Output output = Output::kTable;
};

int Cancel(const Shell& shell, const Options& options) {
  ExitOnInterrupt();
  absl::StatusOr<Client> client = shell.Connect();
  if (!client.ok()) return Fail(client.status());
  return AnswerJob(client->CancelJob(options.handle), options.output, [](const v1::Job& job) {
    const std::string name = Printable(job.metadata().name());
    if (IsFinal(job.phase())) return fmt::format("job {} is {}\n", name, PhaseName(job.phase()));
    return fmt::format("job {} is being cancelled; megactl wait {} returns when it has ended\n",
                       name, Printable(job.uid()));
  });
}

}  // namespace

void AddCancel(Command program, const Shell& shell) {
  Command command = program.AddCommand("cancel", "Stop a job", "megactl cancel shakespeare");
  auto options = std::make_shared<Options>();
  AddJob(command, options->handle).Required();
  AddOutput(command, options->output, {Output::kTable, Output::kJson, Output::kYaml});
  command.OnRun([&shell, options] { return Cancel(shell, *options); });
}

}  // namespace mega::cli
