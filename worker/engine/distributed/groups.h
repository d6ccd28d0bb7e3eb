// The communicators of a rank, from the mesh and a transport.
#pragma once

#include <vector>

#include "coordinator/planner/layout/rank_mesh.h"
#include "worker/engine/distributed/rank_context.h"
#include "worker/engine/distributed/transport.h"

namespace mega::distributed {

// The ranks that share a group with `rank`, itself included, sorted: whose addresses it needs.
std::vector<int64_t> PeersOf(const planner::RankMesh& mesh, int64_t rank);

// A group of one member gets no communicator; without any other rank `transport` may be null.
absl::StatusOr<Groups> MakeGroups(const planner::RankMesh& mesh, int64_t rank, Transport* transport,
                                  absl::Duration timeout);

}  // namespace mega::distributed
