// megactl goodput: where the time of a job, and of its devices, went.
#include <unistd.h>

#include <memory>

#include "absl/time/clock.h"
#include "cli/commands/command.h"
#include "cli/commands/goodput_view.h"
#include "cli/view/json.h"
#include "nlohmann/json.hpp"

namespace mega::cli {
namespace {

struct Options {
  std::string handle;
  Output output = Output::kTable;
};

int Goodput(const Shell& shell, const Options& options) {
  ExitOnInterrupt();
  absl::StatusOr<Client> client = shell.Connect();
  if (!client.ok()) return Fail(client.status());
  const absl::StatusOr<v1::Job> job = client->GetJob(options.handle);
  if (!job.ok()) return Fail(job.status());
  const absl::Time now = absl::Now();
  switch (options.output) {
    case Output::kJson:
      PrintStdout(ToJson(GoodputJson(*job, now)));
      break;
    case Output::kYaml:
      PrintStdout(ToYaml(GoodputJson(*job, now)));
      break;
    default:
      PrintStdout(GoodputText(*job, now, PaletteFor(STDOUT_FILENO, shell.color)));
  }
  return kExitOk;
}

}  // namespace

void AddGoodput(Command program, const Shell& shell) {
  Command command = program.AddCommand(
      "goodput", "Show where the time of a job's devices went: training, rework, starting …",
      "megactl goodput shakespeare");
  auto options = std::make_shared<Options>();
  AddJob(command, options->handle).Required();
  AddOutput(command, options->output, {Output::kTable, Output::kJson, Output::kYaml});
  command.OnRun([&shell, options] { return Goodput(shell, *options); });
}

}  // namespace mega::cli
