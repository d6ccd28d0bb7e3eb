// megactl plan: the layout a job would get and why, offline on an imaginary cluster or asked of a
// coordinator.
#include <algorithm>
#include <memory>
#include <thread>

#include "cli/commands/command.h"
#include "cli/commands/plan_view.h"
#include "cli/spec/job_yaml_print.h"
#include "cli/view/json.h"
#include "coordinator/planner/planner.h"
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

// Nodes like this machine, each with its cores shared out to its devices.
planner::ClusterView ImaginaryCluster(const Options& options, const v1::JobSpec& resolved) {
  const int64_t nodes = options.nodes > 0
                            ? options.nodes
                            : std::max<int64_t>(1, resolved.resources().nodes().desired());
  const int64_t ranks = std::max<int64_t>(1, resolved.parallelism().data_parallel_size());
  int64_t devices = options.devices;
  if (devices == 0) devices = resolved.resources().devices_per_node();
  if (devices == 0) devices = (ranks + nodes - 1) / nodes;
  const int64_t cores = std::max<int64_t>(1, std::thread::hardware_concurrency());
  planner::ClusterView cluster;
  for (int64_t n = 0; n < nodes; ++n) {
    v1::Node& node = cluster.nodes.emplace_back();
    node.set_name(fmt::format("node-{}", n + 1));
    node.set_state(v1::NODE_STATE_READY);
    for (int64_t d = 0; d < devices; ++d) {
      v1::Device& device = *node.add_devices();
      device.set_index(d);
      device.set_kind("cpu");
      device.set_threads(std::max<int64_t>(1, cores / devices));
    }
  }
  return cluster;
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
    absl::StatusOr<v1::Plan> plan = planner::MakePlan(
        response.resolved_spec(), ImaginaryCluster(options, response.resolved_spec()));
    if (absl::IsResourceExhausted(plan.status())) {
      return Fail(
          FailedPrecondition("{}\nthe imaginary cluster is too small; --nodes and --devices "
                             "make it larger",
                             std::string(plan.status().message())));
    }
    if (!plan.ok()) return Fail(plan.status()), kExitInvalidSpec;
    *response.mutable_plan() = *std::move(plan);
  } else {
    v1::PlanJobRequest request;
    *request.mutable_metadata() = loaded.job.metadata;
    *request.mutable_spec() = loaded.job.spec;
    absl::StatusOr<v1::PlanJobResponse> answer = Client(*target).PlanJob(request);
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
