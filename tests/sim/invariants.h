// What must hold at every step, whatever fails. Each check names what it saw; the first ends the
// run.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "coordinator/core/step.h"
#include "mega/v1/coordinator.pb.h"
#include "tests/sim/world.h"

namespace mega::sim {

struct Engine;

// No job of the simulation calls a shorter standstill a hang, in seconds.
inline constexpr int64_t kShortestHang = 10;

class Invariants {
 public:
  explicit Invariants(World& world) : world_(world) {}

  // Around every step of the core, and after every commit.
  void BeforeStep(const core::State& state, const v1::CoreEvent& event);
  void AfterStep(const core::State& state, const v1::CoreEvent& event,
                 const core::Decision& decision);
  void AfterCommit(const core::State& stored, const std::vector<v1::Mutation>& mutations);

  // The coordinator has just started, or goes on after a pause.
  void OnAfresh(absl::Duration lease, absl::Duration skew) {
    horizon_ = world_.now() + lease + skew;
  }
  // A message leaves for a node.
  void OnSent(const core::State& stored, const v1::SendToWorker& send);
  // All is well again, for long enough that everybody has witnesses.
  void CheckWitnesses(const core::State& state);

  // A rank has been started, or goes on after a pause.
  void OnRankLive(const Engine& engine);
  void OnPartWritten(const v1::CheckpointPart& part);
  // A rank takes back what it has written for the step.
  void OnPartTakenBack(const v1::RankRef& rank, int64_t step);
  // A node removes what it was told to: of the folder of a step what was saved in epochs up to the
  // order's, or all if that is 0.
  void OnRemoved(const core::State& stored, const std::string& node, const v1::Command& command);
  // A client has its answer.
  void OnAcked(const core::State& stored, const std::string& request_id, const std::string& uid);
  // The index must be what its records say.
  void CheckIndex(const core::State& state);

  // The engine has joined a collective.
  void OnMoved(const Engine& engine);
  // How far the engine can get: to where a rank of its attempt is stuck.
  int64_t NewestStepPossible(const Engine& engine) const;
  // Some rank of the engine's attempt was started and has ended otherwise than well.
  bool IsPeerDead(const Engine& engine) const;

 private:
  void CheckDevices(const core::State& state);
  void CheckDeadRanks(const v1::Job& job);
  void CheckCheckpoints(const v1::Job& job);
  void CheckParts(const v1::Job& job);
  void NoteRemoval(const v1::PendingCommand& pending);
  void CheckGang(const v1::Job& job);
  void CheckStart(const core::State& state, const v1::Job& job);
  void CheckYield(const core::State& state, const v1::Job& job);
  void CheckGoodput(const v1::Job& job);
  void CheckEndedGoodput(const v1::Job& job);
  void NoteUnfit(const core::State& state);
  void CheckHang(const core::State& state, const v1::JobEvent& event);

  World& world_;
  // (job, epoch) → rank → the engine that was started for it.
  std::map<std::pair<std::string, int64_t>, std::map<int64_t, std::shared_ptr<const Engine>>>
      started_;
  std::set<std::shared_ptr<const Engine>> live_;
  std::map<int64_t, std::pair<std::string, int64_t>> epochs_;     // → job, attempt
  std::map<std::string, v1::JobPhase> terminal_;                  // durable
  std::map<std::string, int64_t> newest_checkpoint_;              // durable
  std::map<std::string, std::pair<int64_t, int64_t>> went_back_;  // job → from attempt, to step
  std::set<std::tuple<std::string, int64_t, int64_t, absl::Time>> goings_back_;  // and when
  std::map<std::string, std::string> acked_;                                     // request → uid
  std::set<std::tuple<std::string, int64_t, int64_t, int64_t>> written_;  // job, epoch, step, rank
  std::set<std::tuple<std::string, int64_t, int64_t>> committed_;         // job, epoch, step
  std::map<core::CommandKey, int64_t> removals_;       // → epoch of the checkpoint that is meant
  std::set<std::pair<std::string, int64_t>> deleted_;  // job, step; by users, in the batch in hand
  std::set<std::pair<std::string, int64_t>> begun_, yielded_;  // job, attempt
  std::map<std::string, absl::Duration> unfit_;  // → when the fleet was last too small for it
  std::map<int64_t, absl::Duration> moved_;      // epoch → when one of its engines did
  absl::Duration horizon_;                       // nobody is lost before it
  int64_t next_epoch_ = 0;
  int64_t revision_ = 0;
  bool is_stale_ = false;                     // the message in hand
  std::set<std::string> lost_;                // nodes, before the step in hand
  std::map<std::string, absl::Time> opened_;  // job → when its open span began, likewise
};

}  // namespace mega::sim
