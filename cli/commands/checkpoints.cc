// megactl checkpoints list: the committed checkpoints of a job.
#include <memory>

#include "cli/commands/command.h"
#include "cli/view/json.h"
#include "cli/view/table.h"
#include "cli/view/words.h"

namespace mega::cli {
namespace {

struct Options {
  std::string handle;
  Output output = Output::kTable;
};

int List(const Shell& shell, const Options& options) {
  ExitOnInterrupt();
  absl::StatusOr<Client> client = shell.Connect();
  if (!client.ok()) return Fail(client.status());
  const absl::StatusOr<v1::Job> job = client->GetJob(options.handle);
  if (!job.ok()) return Fail(job.status());
  if (options.output == Output::kJson) {
    for (const v1::Manifest& manifest : job->checkpoints())
      PrintStdout(ToJsonLine(manifest) + "\n");
    return kExitOk;
  }
  if (options.output == Output::kName) {
    for (const v1::Manifest& manifest : job->checkpoints())
      PrintStdout(Printable(manifest.directory()) + "\n");
    return kExitOk;
  }
  if (job->checkpoints().empty()) {
    std::fprintf(stderr, "job %s has no checkpoint yet (checkpoint.interval_steps is %lld)\n",
                 Printable(job->metadata().name()).c_str(),
                 static_cast<long long>(job->resolved_spec().checkpoint().interval_steps()));
    return kExitOk;
  }
  Table table({"STEP", "SIZE", "CREATED", "VALIDATION LOSS", "FOLDER"});
  for (const v1::Manifest& manifest : job->checkpoints()) {
    table.AddRow({fmt::format("{}", manifest.step()),
                  FormatBytes(static_cast<double>(manifest.total_bytes())),
                  FormatTime(manifest.create_time()),
                  manifest.state().has_validation_loss()
                      ? fmt::format("{:.4f}", manifest.state().validation_loss())
                      : "-",
                  Printable(manifest.directory())});
  }
  PrintStdout(table.ToString());
  return kExitOk;
}

}  // namespace

void AddCheckpoints(Command program, const Shell& shell) {
  Command command = program.AddCommand("checkpoints", "Checkpoints of a job",
                                       "megactl checkpoints list shakespeare");
  command.RequireCommand();
  Command list = command.AddCommand("list", "List the committed checkpoints, oldest first",
                                    "megactl checkpoints list shakespeare");
  auto options = std::make_shared<Options>();
  AddJob(list, options->handle).Required();
  AddOutput(list, options->output, {Output::kTable, Output::kJson, Output::kName});
  list.OnRun([&shell, options] { return List(shell, *options); });
}

}  // namespace mega::cli
