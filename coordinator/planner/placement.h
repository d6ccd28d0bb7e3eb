// Which devices a job gets: a gang, all of them or none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "mega/v1/cluster.pb.h"
#include "mega/v1/job.pb.h"
#include "mega/v1/plan.pb.h"

namespace mega::planner {

struct Placement {
  std::vector<v1::RankPlacement> ranks;  // by rank
  std::vector<std::string> nodes;        // those used, by name
  std::vector<std::string> numeric_libraries;
  int64_t threads_per_device = 1;  // the least of the devices chosen
  int64_t memory_bytes = 0;        // likewise; 0 when some device does not say
};

// Devices, busy or free, of the `count` largest nodes: what a job without sizes asks for.
int64_t DevicesOfLargest(const std::vector<v1::Node>& nodes, int64_t count);

// `world_size` free devices on the fewest nodes, at most resources.nodes.desired of them and at
// most resources.devices_per_node on each. All chosen nodes have the same numeric libraries: others
// would not give bit-identical replicas. Ranks are contiguous on a node; nodes by name, devices by
// index. Same input, same placement. RESOURCE_EXHAUSTED says what is short and what would help.
absl::StatusOr<Placement> Place(const v1::Resources& resources, int64_t world_size,
                                const std::vector<v1::Node>& nodes);

}  // namespace mega::planner
