// megactl nodes: the machines of the cluster.
#include <memory>

#include "absl/time/clock.h"
#include "cli/commands/watch.h"
#include "cli/commands/worker_command.h"
#include "cli/view/json.h"
#include "cli/view/table.h"
#include "cli/view/words.h"

namespace mega::cli {
namespace {

struct Options {
  bool no_headers = false;
  bool watch = false;
  Output output = Output::kTable;
};

std::string StateText(const v1::Node& node) {
  if (!node.cordoned()) return NodeName(node.state());
  return NodeName(node.state()) + (node.draining() ? ", draining" : ", cordoned");
}

std::string NodesText(const v1::ListNodesResponse& nodes, bool wide, bool with_header) {
  std::vector<std::string> header = {"NAME", "STATE", "DEVICES", "IN USE", "HEARTBEAT", "VERSION"};
  if (wide) header.insert(header.end(), {"THREADS", "ADDRESS", "METRICS", "LABELS"});
  Table table(header);
  const absl::Time now = absl::Now();
  for (const v1::Node& node : nodes.nodes()) {
    std::vector<std::string> row = {
        Printable(node.name()),
        StateText(node),
        fmt::format("{}", node.devices_size()),
        fmt::format("{}", node.devices_in_use()),
        FormatAge(node.last_heartbeat(), node.has_last_heartbeat(), now),
        Printable(node.version())};
    if (wide) {
      int64_t threads = 0;
      for (const v1::Device& device : node.devices()) threads += device.threads();
      std::string labels;
      for (const auto& [key, value] : node.labels())
        labels +=
            fmt::format("{}{}={}", labels.empty() ? "" : ",", Printable(key), Printable(value));
      row.insert(row.end(), {fmt::format("{}", threads), Printable(node.address()),
                             Printable(node.metrics_address()), labels});
    }
    table.AddRow(std::move(row));
  }
  return table.ToString(with_header);
}

std::string FindingsText(const v1::ListNodesResponse& nodes) {
  std::string text;
  for (const v1::Node& node : nodes.nodes()) {
    for (const v1::Finding& finding : node.findings()) {
      const bool is_error = finding.severity() == v1::SEVERITY_ERROR;
      text +=
          fmt::format("{}: {}: {}: {}{}\n", Printable(node.name()), is_error ? "ERROR" : "warning",
                      Printable(finding.check()), Printable(finding.message()),
                      is_error ? " (nothing new is placed there)" : "");
    }
  }
  return text.empty() ? "" : "\n" + text;
}

absl::StatusOr<View> Look(Client& client, const Options& options) {
  MEGA_ASSIGN_OR_RETURN(const v1::ListNodesResponse nodes, client.ListNodes());
  View view;
  switch (options.output) {
    case Output::kJson:
    case Output::kYaml:
      view.out = MessageView(nodes, options.output, options.watch);
      break;
    case Output::kName:
      for (const v1::Node& node : nodes.nodes()) view.out += Printable(node.name()) + "\n";
      break;
    default:
      if (nodes.nodes().empty()) {
        view.note = "no nodes; start one: " + WorkerCommand(client.target());
        break;
      }
      view.out = NodesText(nodes, options.output == Output::kWide, !options.no_headers);
      if (!options.no_headers) view.out += FindingsText(nodes);
  }
  return view;
}

int Nodes(const Shell& shell, const Options& options) {
  ExitOnInterrupt();
  absl::StatusOr<Client> client = shell.Connect();
  if (!client.ok()) return Fail(client.status());
  return Show(options.watch, [&] { return Look(*client, options); });
}

}  // namespace

void AddNodes(Command program, const Shell& shell) {
  Command command =
      program.AddCommand("nodes", "List the nodes of the cluster", "megactl nodes -o wide");
  auto options = std::make_shared<Options>();
  AddWatch(command, options->watch);
  command.AddFlag("--no-headers", options->no_headers, "Rows alone");
  AddOutput(command, options->output,
            {Output::kTable, Output::kWide, Output::kJson, Output::kYaml, Output::kName});
  command.OnRun([&shell, options] { return Nodes(shell, *options); });
}

}  // namespace mega::cli
