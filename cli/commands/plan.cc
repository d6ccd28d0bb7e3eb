// megactl plan: the layout a job would get and why, offline on an imaginary cluster or asked of a
// coordinator.
#include <algorithm>
#include <memory>
#include <thread>

#include "cli/commands/command.h"
#include "cli/commands/plan_view.h"
#include "cli/spec/job_yaml_print.h"
#include "cli/view/json.h"
#include "coordinator/planner/offline_plan.h"
#include "coordinator/planner/spec/spec.h"

namespace mega::cli {
namespace {

struct Options {
  std::string file;
  std::vector<std::string> overrides;
  int64_t nodes = 0;    // 0: as many as the job asks for
  int64_t devices = 0;  // on each; 0: as many as the job asks for
  bool spec = false;
  Output output = Output::kTable;
};

// Of the imaginary cluster's plan; returns the exit code.
int FailOffline(const absl::Status& status) {
  const std::string why(status.message());
  if (absl::IsResourceExhausted(status))
    return Fail(FailedPrecondition(
        "{}\nthe imaginary cluster is too small; --nodes and --devices make it larger", why));
  if (absl::IsOutOfRange(status))
    return Fail(InvalidArgument("{}; lower --nodes or --devices", why));
  Fail(status);
  return kExitInvalidSpec;
}

int Plan(const Shell& shell, const Options& options) {
  ExitOnInterrupt();
  const std::string consequence = "no plan was made";
  const absl::StatusOr<Target> target = shell.FindTarget();
  if (!target.ok()) return Fail(target.status());
  const LoadedJob loaded =
      LoadJob(options.file, options.overrides, target->name_space, consequence);
  if (loaded.exit_code != kExitOk) return loaded.exit_code;

  v1::PlanJobResponse response;
  const bool offline = options.nodes > 0 || options.devices > 0 || target->source == "default";
  *response.mutable_resolved_spec() = spec::ApplyDefaults(loaded.job.spec);
  if (options.spec) {
    PrintStdout(PrintJob(loaded.job.metadata, response.resolved_spec()));
    return kExitOk;
  }
  if (offline) {
    // Nodes like this machine.
    const int64_t cores = std::max<int64_t>(1, std::thread::hardware_concurrency());
    absl::StatusOr<v1::Plan> plan = planner::MakeOfflinePlan(
        response.resolved_spec(),
        {.nodes = options.nodes, .devices = options.devices, .cores = cores});
    if (!plan.ok()) return FailOffline(plan.status());
    *response.mutable_plan() = *std::move(plan);
  } else {
    v1::PlanJobRequest request;
    *request.mutable_metadata() = loaded.job.metadata;
    *request.mutable_spec() = loaded.job.spec;
    absl::StatusOr<Client> client = Client::Connect(*target);
    if (!client.ok()) return Fail(client.status());
    absl::StatusOr<v1::PlanJobResponse> answer = client->PlanJob(request);
    if (!answer.ok()) return FailRefused(answer.status(), loaded, consequence);
    response = *std::move(answer);
  }
  if (options.output == Output::kJson) {
    PrintStdout(ToJson(response));
  } else if (options.output == Output::kYaml) {
    PrintStdout(ToYaml(response));
  } else {
    const std::string where =
        offline ? "an imaginary cluster" : "the cluster of " + target->address;
    PrintStdout(fmt::format("plan of {} on {}\n{}{}\n{}", loaded.source, where,
                            PlanText(response.plan()), QueueText(response),
                            PlacementText(response.plan())));
  }
  return kExitOk;
}

}  // namespace

void AddPlan(Command program, const Shell& shell) {
  Command command = program.AddCommand("plan", "Show the layout a job would get, and why",
                                       "megactl plan job.yaml --nodes 2 --devices 8");
  auto options = std::make_shared<Options>();
  command.AddOption("file", options->file, "Job file, - for standard input").Required();
  AddOverrides(command, options->overrides);
  command.AddOption("--nodes", options->nodes, "Plan offline for this many imaginary nodes")
      .InRange(1, 100'000)
      .TypeName("N");
  command.AddOption("--devices", options->devices, "…with this many devices each")
      .InRange(1, 4096)
      .TypeName("N");
  command.AddFlag("--spec", options->spec, "Print the job file with all defaults instead");
  AddOutput(command, options->output, {Output::kTable, Output::kJson, Output::kYaml});
  command.OnRun([&shell, options] { return Plan(shell, *options); });
}

}  // namespace mega::cli
