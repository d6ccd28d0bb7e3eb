// megactl scale: another number of nodes for a job that runs.
#include <memory>

#include "base/command_line/command_line.h"
#include "cli/commands/command.h"
#include "cli/view/words.h"

namespace mega::cli {
namespace {

struct Options {
  std::string handle;
  int64_t nodes = 0;
  bool now = false;
  Output output = Output::kTable;
};

int Scale(const Shell& shell, const Options& options) {
  ExitOnInterrupt();
  absl::StatusOr<Client> client = shell.Connect();
  if (!client.ok()) return Fail(client.status());
  return AnswerJob(client->ScaleJob(options.handle, options.nodes, options.now), options.output,
                   [&](const v1::Job& job) {
                     return fmt::format(
                         "job {} goes to {} {} {}, as soon as they are there\n",
                         Printable(job.metadata().name()), options.nodes,
                         options.nodes == 1 ? "node" : "nodes",
                         options.now ? "once it has saved" : "at its next checkpoint");
                   });
}

}  // namespace

void AddScale(Command program, const Shell& shell) {
  Command command = program.AddCommand("scale", "Give a job another number of nodes",
                                       "megactl scale shakespeare --nodes 4");
  auto options = std::make_shared<Options>();
  AddJob(command, options->handle).Required();
  command.AddOption("--nodes", options->nodes, "Within resources.nodes.min and max of its job file")
      .AtLeast(1)
      .Required();
  command.AddFlag("--now", options->now, "Save now, instead of waiting for the next checkpoint");
  AddOutput(command, options->output, {Output::kTable, Output::kJson, Output::kYaml});
  command.OnRun([&shell, options] { return Scale(shell, *options); });
}

}  // namespace mega::cli
