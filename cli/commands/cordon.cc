// megactl cordon, uncordon, drain: nodes that get nothing new, and whose jobs move away.
#include <memory>

#include "cli/commands/command.h"
#include "cli/view/json.h"
#include "cli/view/words.h"

namespace mega::cli {
namespace {

struct Options {
  std::string node;
  std::string reason;
  int64_t grace_seconds = 60;
  Output output = Output::kTable;
};

int Tell(const absl::StatusOr<v1::Node>& node, Output output, const std::string& what) {
  if (!node.ok()) return Fail(node.status());
  if (output == Output::kJson) {
    PrintStdout(ToJson(*node));
  } else if (output == Output::kYaml) {
    PrintStdout(ToYaml(*node));
  } else {
    PrintStdout(fmt::format("node {} {}\n", Printable(node->name()), what));
  }
  return kExitOk;
}

std::string InUse(const absl::StatusOr<v1::Node>& node) {
  return node.ok() ? fmt::format("{} of its {} devices are in use", node->devices_in_use(),
                                 node->devices_size())
                   : "";
}

template <typename Action>
Command AddNodeCommand(Command program, const Shell& shell, const std::shared_ptr<Options>& options,
                       const std::string& name, const std::string& help, const std::string& example,
                       Action action) {
  Command command = program.AddCommand(name, help, example);
  command.AddOption("node", options->node, "Name of the node").Required();
  AddOutput(command, options->output, {Output::kTable, Output::kJson, Output::kYaml});
  command.OnRun([&shell, options, action] {
    ExitOnInterrupt();
    absl::StatusOr<Client> client = shell.Connect();
    return client.ok() ? action(*client, *options) : Fail(client.status());
  });
  return command;
}

}  // namespace

void AddCordon(Command program, const Shell& shell) {
  auto options = std::make_shared<Options>();
  Command cordon = AddNodeCommand(
      program, shell, options, "cordon", "Place nothing new on a node; what runs there goes on",
      "megactl cordon node-7 --reason 'a fan is loud'", [](Client& client, const Options& asked) {
        const auto node = client.CordonNode(asked.node, asked.reason);
        return Tell(node, asked.output, "gets nothing new; " + InUse(node));
      });
  cordon.AddOption("--reason", options->reason, "Why, for who looks at it later");

  AddNodeCommand(program, shell, options, "uncordon", "Place jobs on a node again",
                 "megactl uncordon node-7", [](Client& client, const Options& asked) {
                   return Tell(client.UncordonNode(asked.node), asked.output, "is used again");
                 });

  Command drain = AddNodeCommand(
      program, shell, options, "drain",
      "Cordon a node and move its jobs away, each after a checkpoint",
      "megactl drain node-7 --grace 120", [](Client& client, const Options& asked) {
        const auto node = client.DrainNode(asked.node, asked.reason, asked.grace_seconds);
        return Tell(node, asked.output,
                    "is drained: its jobs save and go on elsewhere; " + InUse(node));
      });
  drain.AddOption("--reason", options->reason, "Why, for who looks at it later");
  drain.AddOption("--grace", options->grace_seconds, "Time to save before the ranks are stopped")
      .InRange(0, 86'400)
      .TypeName("SECONDS");
}

}  // namespace mega::cli
