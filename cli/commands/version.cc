// megactl version: its own, and the coordinator's when one answers.
#include <memory>

#include "base/version.h"
#include "cli/commands/command.h"
#include "cli/view/json.h"
#include "nlohmann/json.hpp"

namespace mega::cli {
namespace {

int Version(const Shell& shell, Output output) {
  ExitOnInterrupt();
  const absl::StatusOr<Target> target = shell.FindTarget();
  if (!target.ok()) return Fail(target.status());
  absl::StatusOr<Client> client = Client::Connect(*target);
  const absl::StatusOr<v1::GetVersionResponse> coordinator =
      client.ok() ? client->GetVersion() : client.status();
  if (output != Output::kTable) {
    nlohmann::ordered_json json = {{"version", kVersion}};
    if (coordinator.ok())
      json["coordinator"] = {{"address", target->address},
                             {"version", coordinator->version()},
                             {"revision", coordinator->revision()}};
    PrintStdout(output == Output::kJson ? ToJson(json) : ToYaml(json));
    return kExitOk;
  }
  PrintStdout(fmt::format("megactl {}\n", kVersion));
  if (coordinator.ok()) {
    PrintStdout(
        fmt::format("coordinator {} ({})\n", Printable(coordinator->version()), target->address));
  } else {
    const std::string why = client.ok() ? "" : ": " + std::string(client.status().message());
    PrintStdout(fmt::format("coordinator not {} ({}, from {}){}\n",
                            client.ok() ? "reached" : "asked", target->address, target->source,
                            why));
  }
  return kExitOk;
}

}  // namespace

void AddVersion(Command program, const Shell& shell) {
  Command command = program.AddCommand("version", "Show versions", "megactl version -o json");
  auto output = std::make_shared<Output>(Output::kTable);
  AddOutput(command, *output, {Output::kTable, Output::kJson, Output::kYaml});
  command.OnRun([&shell, output] { return Version(shell, *output); });
}

}  // namespace mega::cli
