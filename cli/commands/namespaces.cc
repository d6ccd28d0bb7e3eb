// megactl namespaces list|set|delete: how much the jobs of a namespace may hold together.
#include <memory>
#include <optional>

#include "cli/commands/command.h"
#include "cli/view/json.h"
#include "cli/view/table.h"
#include "cli/view/words.h"

namespace mega::cli {
namespace {

struct Options {
  std::string name;
  std::optional<int64_t> max_devices, max_jobs, max_priority;
  bool any_priority = false;
  Output output = Output::kTable;
};

std::string OrNone(int64_t limit) { return limit > 0 ? fmt::format("{}", limit) : "-"; }

std::string NamespacesText(const v1::ListNamespacesResponse& all) {
  Table table({"NAME", "DEVICES", "MAX DEVICES", "JOBS", "MAX JOBS", "MAX PRIORITY"});
  for (const v1::Namespace& one : all.namespaces()) {
    table.AddRow({Printable(one.name()), fmt::format("{}", one.devices_in_use()),
                  OrNone(one.max_devices()), fmt::format("{}", one.unfinished_jobs()),
                  OrNone(one.max_jobs()),
                  one.has_max_priority() ? fmt::format("{}", one.max_priority()) : "-"});
  }
  return table.ToString();
}

void Print(const google::protobuf::Message& message, Output output, const std::string& text) {
  PrintStdout(output == Output::kJson   ? ToJson(message)
              : output == Output::kYaml ? ToYaml(message)
                                        : text);
}

int List(const Shell& shell, const Options& options) {
  ExitOnInterrupt();
  absl::StatusOr<Client> client = shell.Connect();
  if (!client.ok()) return Fail(client.status());
  const absl::StatusOr<v1::ListNamespacesResponse> all = client->ListNamespaces();
  if (!all.ok()) return Fail(all.status());
  Print(*all, options.output, NamespacesText(*all));
  return kExitOk;
}

// What is not named stays as it is.
int Set(const Shell& shell, const Options& options) {
  ExitOnInterrupt();
  absl::StatusOr<Client> client = shell.Connect();
  if (!client.ok()) return Fail(client.status());
  const absl::StatusOr<v1::ListNamespacesResponse> all = client->ListNamespaces();
  if (!all.ok()) return Fail(all.status());
  v1::Namespace limits;
  for (const v1::Namespace& known : all->namespaces())
    if (known.name() == options.name) limits = known;
  limits.set_name(options.name);
  if (options.max_devices) limits.set_max_devices(*options.max_devices);
  if (options.max_jobs) limits.set_max_jobs(*options.max_jobs);
  if (options.max_priority) {
    limits.set_max_priority(*options.max_priority);
    limits.set_has_max_priority(true);
  }
  if (options.any_priority) {
    limits.set_max_priority(0);
    limits.set_has_max_priority(false);
  }
  const absl::StatusOr<v1::Namespace> set = client->UpdateNamespace(limits);
  if (!set.ok()) return Fail(set.status());
  v1::ListNamespacesResponse one;
  *one.add_namespaces() = *set;
  Print(*set, options.output, NamespacesText(one));
  return kExitOk;
}

int Delete(const Shell& shell, const Options& options) {
  ExitOnInterrupt();
  absl::StatusOr<Client> client = shell.Connect();
  if (!client.ok()) return Fail(client.status());
  const absl::Status deleted = client->DeleteNamespace(options.name);
  if (!deleted.ok()) return Fail(deleted);
  Print(v1::DeleteNamespaceResponse(), options.output,
        fmt::format("namespace {} has no limits any more\n", Printable(options.name)));
  return kExitOk;
}

}  // namespace

void AddNamespaces(Command program, const Shell& shell) {
  Command command = program.AddCommand("namespaces", "Quotas: what a namespace's jobs may hold",
                                       "megactl namespaces set research --max-devices 64");
  command.RequireCommand();
  const std::vector<Output> formats = {Output::kTable, Output::kJson, Output::kYaml};
  auto options = std::make_shared<Options>();
  Command list =
      command.AddCommand("list", "List limits and what is held of them", "megactl namespaces list");
  AddOutput(list, options->output, formats);
  list.OnRun([&shell, options] { return List(shell, *options); });

  Command set =
      command.AddCommand("set", "Set limits; those not named stay",
                         "megactl namespaces set research --max-devices 64 --max-jobs 20");
  set.AddOption("name", options->name, "Namespace").Required();
  set.AddOption("--max-devices", options->max_devices, "In use at one time; 0: no limit");
  set.AddOption("--max-jobs", options->max_jobs, "Unfinished at one time; 0: no limit");
  Option priority =
      set.AddOption("--max-priority", options->max_priority, "Highest scheduling.priority");
  set.AddFlag("--any-priority", options->any_priority, "No highest one").Excludes(priority);
  AddOutput(set, options->output, formats);
  set.OnRun([&shell, options] { return Set(shell, *options); });

  Command remove = command.AddCommand("delete", "Forget the limits of a namespace without jobs",
                                      "megactl namespaces delete research");
  remove.AddOption("name", options->name, "Namespace").Required();
  AddOutput(remove, options->output, formats);
  remove.OnRun([&shell, options] { return Delete(shell, *options); });
}

}  // namespace mega::cli
