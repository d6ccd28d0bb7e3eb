// What a rank is: its place in the layout, its groups, its device memory and stream. Passed down by
// reference; the opposite of globals.
#pragma once

#include <cstdint>
#include <memory>

#include "coordinator/planner/layout/rank_mesh.h"
#include "kernels/device/stream.h"
#include "worker/engine/distributed/communicator.h"
#include "worker/engine/tensor/pool.h"

namespace mega::distributed {

// Communicators of the groups this rank is in; null where the group has one member.
struct Groups {
  std::unique_ptr<Communicator> world;
  std::unique_ptr<Communicator> data;
};

struct RankContext {
  int64_t rank = 0;
  int64_t world_size = 1;
  planner::Coords coords;
  int64_t data_parallel_size = 1;
  uint64_t seed = 0;
  Groups& groups;
  Pool& pool;
  Stream& compute;
};

}  // namespace mega::distributed
