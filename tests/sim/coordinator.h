// The coordinator's shell in the simulator: the real core, a store that loses what was not synced,
// and effects that leave only when what they speak of is durable.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "coordinator/core/step.h"
#include "tests/sim/invariants.h"
#include "tests/sim/network.h"

namespace mega::sim {

class Coordinator {
 public:
  struct Faults {
    double slow_sync_chance = 0;  // a commit that takes seconds
    double crash_chance = 0;      // at each boundary: before and after a commit, between effects
  };
  Coordinator(World& world, Network& network, Invariants& invariants, core::Options options,
              Faults faults);

  void Start();
  void Crash();
  void CrashFor(absl::Duration span);
  void PauseFor(absl::Duration span);
  void StepWallClock(absl::Duration by);
  void Heal();

  bool is_alive() const { return is_alive_; }
  int64_t life() const { return life_; }
  const core::State& state() const { return state_; }
  const core::State& stored() const { return stored_; }

  // From the network.
  void OnMessage(const ConnectionPtr& connection, const v1::WorkerMessage& message);
  void OnClosed(const ConnectionPtr& connection);
  // From clients, each answered at most once (not at all when the coordinator dies first).
  using Answer = std::function<void(const v1::ReplyCall&)>;
  void Submit(v1::CoreSubmit submit, Answer answer);
  void Cancel(v1::CoreCancel cancel, Answer answer);
  void Ask(v1::CoreRequest request, Answer answer);
  void OnStepReport(const v1::StepReport& report);

 private:
  struct Batch {
    std::vector<v1::Mutation> mutations;
    std::vector<v1::Effect> effects;
  };
  void Feed(v1::CoreEvent event);
  void Handle(v1::CoreEvent event);
  void Tick();
  void CommitNext();
  void Carry(const v1::Effect& effect);
  bool MaybeCrash();
  v1::Plan MakePlan(const v1::AskPlan& ask, std::string* error);

  World& world_;
  Network& network_;
  Invariants& invariants_;
  const core::Options options_;
  Faults faults_;

  core::State state_;   // lost in a crash
  core::State stored_;  // survives it
  bool is_alive_ = false;
  int64_t life_ = 0;
  absl::Duration paused_until_;
  absl::Duration last_tick_;
  absl::Duration wall_offset_;
  std::deque<v1::CoreEvent> held_;  // came during a pause
  std::deque<Batch> batches_;       // handed to the disk, in order
  bool is_committing_ = false;
  std::map<std::pair<std::string, int64_t>, ConnectionPtr> sessions_;
  int64_t next_session_ = 1;
  int64_t next_call_ = 1;
  std::map<int64_t, Answer> calls_;
};

}  // namespace mega::sim
