// The groups of one rank: publishes its address, waits for those of its peers, connects.
#pragma once

#include <memory>

#include "base/status.h"
#include "coordinator/planner/layout/rank_mesh.h"
#include "mega/v1/trainer.pb.h"
#include "worker/engine/distributed/groups.h"
#include "worker/engine/distributed/ucx.h"
#include "worker/engine/main/trainer_link.h"

namespace mega::engine {

class Network {
 public:
  // Waits until all ranks of the attempt are ready, however long the others take to build their
  // data; CANCELLED when the worker says stop. (Without a coordinator the lease ends the rank.)
  static absl::StatusOr<std::unique_ptr<Network>> Connect(const v1::StartTraining& start,
                                                          const planner::RankMesh& mesh,
                                                          TrainerLink& link);
  distributed::Groups& groups() { return groups_; }

 private:
  std::unique_ptr<distributed::UcxTransport> transport_;  // outlives the communicators
  distributed::Groups groups_;
};

}  // namespace mega::engine
