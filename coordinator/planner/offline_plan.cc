#include "coordinator/planner/offline_plan.h"

#include <algorithm>

#include "coordinator/planner/planner.h"
#include "coordinator/planner/spec/device_rules.h"
#include "fmt/format.h"

namespace mega::planner {
namespace {

int64_t DevicesOfEach(const v1::JobSpec& resolved, int64_t nodes) {
  if (resolved.resources().has_devices_per_node()) return resolved.resources().devices_per_node();
  const int64_t ranks = spec::DevicesOfReplica(resolved) *
                        std::max<int64_t>(resolved.parallelism().data_parallel_size(), 1);
  return (ranks + nodes - 1) / nodes;
}

// Devices come into being one by one, so there must not be more than `total`.
ClusterView ClusterOf(const ImaginaryNodes& kind, int64_t total) {
  ClusterView cluster;
  for (int64_t n = 0; n < kind.nodes && total > 0; ++n) {
    v1::Node& node = cluster.nodes.emplace_back();
    node.set_name(fmt::format("node-{}", n + 1));
    node.set_state(v1::NODE_STATE_READY);
    for (int64_t d = 0; d < kind.devices && total > 0; ++d, --total) {
      v1::Device& device = *node.add_devices();
      device.set_index(d);
      device.set_kind("cpu");
      device.set_threads(std::max<int64_t>(1, kind.cores / kind.devices));
    }
  }
  return cluster;
}

}  // namespace

absl::StatusOr<v1::Plan> MakeOfflinePlan(const v1::JobSpec& resolved, const ImaginaryNodes& nodes) {
  ImaginaryNodes kind = nodes;
  if (kind.nodes == 0) kind.nodes = std::max<int64_t>(resolved.resources().nodes().desired(), 1);
  if (kind.devices == 0) kind.devices = DevicesOfEach(resolved, kind.nodes);
  // A job may take a few devices of many that it leaves to the placement.
  const bool is_sized = nodes.nodes > 0 || nodes.devices > 0;
  const int64_t total = is_sized ? kind.nodes * kind.devices : spec::DevicesAsked(resolved);
  if (total > spec::kMostDevices)
    return absl::OutOfRangeError(
        fmt::format("{} nodes of {} devices are {} devices; a job has at "
                    "most {}",
                    kind.nodes, kind.devices, kind.nodes * kind.devices, spec::kMostDevices));
  return MakePlan(resolved, ClusterOf(kind, total));
}

}  // namespace mega::planner
