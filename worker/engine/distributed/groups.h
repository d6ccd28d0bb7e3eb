// The communicators of a rank, from the mesh and a transport.
#pragma once

#include <memory>

#include "coordinator/planner/layout/rank_mesh.h"
#include "worker/engine/distributed/communicator.h"
#include "worker/engine/distributed/transport.h"

namespace mega::distributed {

// Of the groups a rank is in; null where the group has one member.
struct Groups {
  std::unique_ptr<Communicator> data;
};

// A group of one member gets no communicator; without any other rank `transport` may be null.
absl::StatusOr<Groups> MakeGroups(const planner::RankMesh& mesh, int64_t rank, Transport* transport,
                                  absl::Duration timeout);

}  // namespace mega::distributed
