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

bool OnOneNode(const v1::Plan& plan);

class Network {
 public:
  // Waits until all ranks of the attempt are ready, however long the others take to build their
  // data; CANCELLED when the worker says stop. (Without a coordinator the lease ends the rank.)
  static absl::StatusOr<std::unique_ptr<Network>> Connect(const v1::StartTraining& start,
                                                          const planner::RankMesh& mesh,
                                                          TrainerLink& link);
  distributed::Groups& groups() { return groups_; }

  // Until all ranks of the attempt are here. They may come far apart: one has its weights in the
  // page cache, another reads them from a slow disk. So this wait is much longer than that for a
  // collective, which is for ranks that compute in step.
  absl::Status AwaitAll(Stream& stream);
  // Ends all waits for peers, now and later, with `why`, and tells the peers. Thread-safe.
  void Abort(const absl::Status& why);

 private:
  absl::Duration load_timeout_, collective_timeout_;
  std::unique_ptr<distributed::UcxTransport> transport_;  // outlives the communicators
  distributed::Groups groups_;
};

}  // namespace mega::engine
