// megactl cancel: ask a job to stop.
#include <memory>

#include "cli/commands/command.h"
#include "cli/view/json.h"
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
  const absl::StatusOr<v1::Job> job = client->CancelJob(options.handle);
  if (!job.ok()) return Fail(job.status());
  if (options.output == Output::kJson) {
    PrintStdout(ToJson(*job));
  } else if (options.output == Output::kYaml) {
    PrintStdout(ToYaml(*job));
  } else if (IsFinal(job->phase())) {
    PrintStdout(
        fmt::format("job {} is {}\n", Printable(job->metadata().name()), PhaseName(job->phase())));
  } else {
    PrintStdout(
        fmt::format("job {} is being cancelled; megactl wait {} returns when it has ended\n",
                    Printable(job->metadata().name()), job->uid()));
  }
  return kExitOk;
}

}  // namespace

void AddCancel(CLI::App& app, Shell& shell) {
  CLI::App* command = AddCommand(app, "cancel", "Stop a job", "megactl cancel shakespeare");
  auto options = std::make_shared<Options>();
  command->add_option("job", options->handle, "Name, id, or the unique start of one")->required();
  AddOutput(*command, options->output, {Output::kTable, Output::kJson, Output::kYaml});
  command->callback([&shell, options] { shell.exit_code = Cancel(shell, *options); });
}

}  // namespace mega::cli
