// megactl doctor: does what it needs stand where it should, and what to do where it does not.
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "base/disk_space.h"
#include "base/version.h"
#include "cli/commands/checkup.h"
#include "cli/commands/command.h"
#include "cli/commands/engine_process.h"
#include "cli/view/json.h"
#include "nlohmann/json.hpp"

namespace mega::cli {
namespace {

std::optional<double> FreeBytes(const std::string& path) {
  const std::optional<DiskSpace> disk = DiskSpaceAt(path);
  if (!disk.has_value()) return std::nullopt;
  return static_cast<double>(disk->free_bytes);
}

void CheckCluster(const Shell& shell, std::vector<Check>& checks) {
  absl::StatusOr<Client> client = shell.Connect();
  if (!client.ok()) {
    checks.push_back(CheckRefusal(client.status()));
    return;
  }
  const Target& target = client->target();
  const absl::StatusOr<v1::GetVersionResponse> version = client->GetVersion();
  checks.push_back(CheckCoordinator(target, version));
  if (!version.ok()) return;
  const absl::StatusOr<v1::ListNodesResponse> nodes = client->ListNodes();
  if (!nodes.ok()) {
    checks.push_back({.name = "nodes",
                      .verdict = Verdict::kFail,
                      .finding = std::string(nodes.status().message()),
                      .way_out = "the coordinator answers and does not list its nodes: its log "
                                 "says why"});
    return;
  }
  const absl::Time now = absl::Now();
  checks.push_back(CheckVersions(kVersion, version->version(), *nodes));
  checks.push_back(CheckClock(*nodes, now));
  std::vector<Check> of_nodes = CheckNodes(*nodes, target);
  std::move(of_nodes.begin(), of_nodes.end(), std::back_inserter(checks));
}

void CheckThisMachine(std::vector<Check>& checks) {
  std::vector<std::string> missing;
  for (const char* program : {"mega-coordinator", "mega-worker", "mega-engine"}) {
    if (!ProgramBeside(program).ok()) missing.push_back(program);
  }
  checks.push_back(CheckPrograms(missing));
  checks.push_back(CheckSharedMemory(FreeBytes("/dev/shm")));
  std::error_code error;
  const std::string here = std::filesystem::current_path(error).string();
  checks.push_back(CheckDisk(here.empty() ? "." : here, FreeBytes(".")));
}

int Doctor(const Shell& shell, Output output) {
  ExitOnInterrupt();
  std::vector<Check> checks;
  CheckCluster(shell, checks);
  CheckThisMachine(checks);
  PrintStdout(output == Output::kJson ? ToJson(ChecksJson(checks))
              : output == Output::kYaml
                  ? ToYaml(ChecksJson(checks))
                  : ChecksText(checks, PaletteFor(STDOUT_FILENO, shell.color)));
  return HasFailed(checks) ? kExitFailure : kExitOk;
}

}  // namespace

void AddDoctor(Command program, const Shell& shell) {
  Command command = program.AddCommand(
      "doctor", "Check the coordinator, its nodes and this machine", "megactl doctor");
  command.Footer("Exit codes: 0 nothing failed (warnings may stand), 1 a check failed.");
  auto output = std::make_shared<Output>(Output::kTable);
  AddOutput(command, *output, {Output::kTable, Output::kJson, Output::kYaml});
  command.OnRun([&shell, output] { return Doctor(shell, *output); });
}

}  // namespace mega::cli
