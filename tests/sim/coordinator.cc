#include "tests/sim/coordinator.h"

#include <utility>

#include "base/clock.h"
#include "coordinator/core/apply.h"
#include "tests/sim/machine.h"

namespace mega::sim {
namespace {

const absl::Time kEpochOfWorld = absl::FromUnixSeconds(1'700'000'000);

}  // namespace

Coordinator::Coordinator(World& world, Network& network, Invariants& invariants,
                         core::Options options, Faults faults)
    : world_(world),
      network_(network),
      invariants_(invariants),
      options_(options),
      faults_(faults) {
  network_.SetCoordinator(this);
}

void Coordinator::Start() {
  if (is_alive_) return;
  is_alive_ = true;
  ++life_;
  world_.Trace("coordinator starts, life {}", life_);
  state_ = stored_;
  state_.options = options_;
  v1::CoreEvent event;
  event.mutable_started()->set_new_cluster_id(fmt::format("cluster-{}", life_));
  invariants_.OnAfresh(options_.lease, options_.skew);
  Handle(std::move(event));
  Tick();
}

void Coordinator::Crash() {
  if (!is_alive_) return;
  world_.Trace("coordinator crashes; {} batches are lost", batches_.size());
  is_alive_ = false;
  ++life_;
  batches_.clear();
  is_committing_ = false;
  held_.clear();
  calls_.clear();
  paused_until_ = absl::ZeroDuration();
  for (auto& [key, connection] : std::exchange(sessions_, {})) {
    network_.CloseByCoordinator(connection);
  }
  next_session_ = 1;
}

void Coordinator::CrashFor(absl::Duration span) {
  Crash();
  world_.After(span, [this] { Start(); });
}

void Coordinator::PauseFor(absl::Duration span) {
  if (!is_alive_) return;
  world_.Trace("coordinator pauses for {}", absl::FormatDuration(span));
  paused_until_ = std::max(paused_until_, world_.now() + span);
}

void Coordinator::StepWallClock(absl::Duration by) {
  world_.Trace("the coordinator's wall clock is set by {}", absl::FormatDuration(by));
  wall_offset_ += by;
}

void Coordinator::Heal() {
  faults_ = {};
  paused_until_ = std::min(paused_until_, world_.now());
  Start();
}

bool Coordinator::MaybeCrash() {
  if (!world_.rng.Chance(faults_.crash_chance)) return false;
  CrashFor(world_.rng.Between(absl::Milliseconds(50), absl::Seconds(5)));
  return true;
}

void Coordinator::Tick() {
  v1::CoreEvent event;
  event.mutable_tick();
  // A paused loop misses its ticks; it does not catch up on them.
  if (paused_until_ <= world_.now()) Feed(std::move(event));
  world_.After(world_.rng.Between(absl::Milliseconds(100), absl::Milliseconds(300)),
               [this, life = life_] {
                 if (life == life_) Tick();
               });
}

void Coordinator::Feed(v1::CoreEvent event) {
  if (!is_alive_) return;
  const bool was_empty = held_.empty();
  if (paused_until_ <= world_.now() && was_empty) return Handle(std::move(event));
  held_.push_back(std::move(event));
  if (!was_empty) return;
  world_.At(paused_until_, [this, life = life_] {
    while (life == life_ && !held_.empty() && paused_until_ <= world_.now()) {
      v1::CoreEvent next = std::move(held_.front());
      held_.pop_front();
      Handle(std::move(next));
    }
    if (life != life_ || held_.empty()) return;
    // Paused again: take the rest up at the end of that pause.
    std::deque<v1::CoreEvent> rest = std::exchange(held_, {});
    for (v1::CoreEvent& later : rest) Feed(std::move(later));
  });
}

void Coordinator::Handle(v1::CoreEvent event) {
  *event.mutable_now() = ToProto(kEpochOfWorld + world_.now() + wall_offset_);
  const int64_t life = life_;
  if (event.has_tick()) {
    if (world_.now() - last_tick_ > options_.heartbeat) {
      invariants_.OnAfresh(options_.lease, options_.skew);
    }
    last_tick_ = world_.now();
  }
  invariants_.BeforeStep(state_, event);
  core::Decision decision = core::Step(state_, event);
  if (world_.is_traced() && !event.has_tick() && !event.worker().message().has_heartbeat()) {
    world_.Trace("step  {}", event.ShortDebugString().substr(0, 300));
    for (const v1::Mutation& mutation : decision.mutations) {
      if (mutation.has_put_event()) {
        world_.Trace("  event {}: {}", mutation.put_event().reason(),
                     mutation.put_event().message());
      }
    }
  }
  invariants_.AfterStep(state_, event, decision);

  Batch batch{.mutations = std::move(decision.mutations), .effects = {}};
  for (v1::Effect& effect : decision.effects) {
    if (effect.immediate()) {
      Carry(effect);
    } else {
      batch.effects.push_back(std::move(effect));
    }
  }
  if (batch.mutations.empty() && batch.effects.empty()) return;
  if (MaybeCrash() || life != life_) return;
  batches_.push_back(std::move(batch));
  CommitNext();
}

void Coordinator::CommitNext() {
  if (is_committing_ || batches_.empty()) return;
  is_committing_ = true;
  const absl::Duration sync =
      world_.rng.Chance(faults_.slow_sync_chance)
          ? world_.rng.Between(absl::ZeroDuration(), absl::Seconds(5))
          : world_.rng.Between(absl::Microseconds(100), absl::Milliseconds(3));
  world_.After(sync, [this, life = life_] {
    if (life != life_ || MaybeCrash()) return;
    Batch batch = std::move(batches_.front());
    batches_.pop_front();
    for (const v1::Mutation& mutation : batch.mutations) core::Apply(stored_, mutation);
    invariants_.AfterCommit(stored_, batch.mutations);
    if (MaybeCrash()) return;
    for (const v1::Effect& effect : batch.effects) {
      Carry(effect);
      if (MaybeCrash() || life != life_) return;
    }
    is_committing_ = false;
    CommitNext();
  });
}

void Coordinator::Carry(const v1::Effect& effect) {
  if (effect.has_send()) {
    const auto session = sessions_.find({effect.send().node(), effect.send().session()});
    if (session != sessions_.end()) invariants_.OnSent(stored_, effect.send());
    if (session != sessions_.end()) network_.SendDown(session->second, effect.send().message());
  } else if (effect.has_close_session()) {
    const auto session =
        sessions_.find({effect.close_session().node(), effect.close_session().session()});
    if (session == sessions_.end()) return;
    network_.CloseByCoordinator(session->second);
    sessions_.erase(session);
  } else if (effect.has_reply()) {
    const auto call = calls_.find(effect.reply().call());
    if (call == calls_.end()) return;
    Answer answer = std::move(call->second);
    calls_.erase(call);
    answer(effect.reply());
  } else if (effect.has_ask_plan()) {
    v1::CoreEvent event;
    v1::CorePlanMade& made = *event.mutable_plan_made();
    made.set_job_uid(effect.ask_plan().job_uid());
    made.set_revision(effect.ask_plan().revision());
    v1::Plan plan = MakePlan(effect.ask_plan(), made.mutable_error());
    if (made.error().empty()) *made.mutable_plan() = std::move(plan);
    world_.After(world_.rng.Between(absl::Milliseconds(1), absl::Milliseconds(50)),
                 [this, life = life_, event] {
                   if (life == life_) Feed(event);
                 });
  }
}

v1::Plan Coordinator::MakePlan(const v1::AskPlan& ask, std::string* error) {
  v1::Plan plan;
  const int64_t world_size = ask.resolved_spec().parallelism().data_parallel_size();
  plan.set_world_size(world_size);
  plan.mutable_layout()->set_data_parallel_size(world_size);
  plan.set_steps(ask.resolved_spec().training().steps());
  int64_t free = 0;
  for (const v1::Node& node : ask.nodes()) {
    for (const v1::Device& device : node.devices()) {
      ++free;
      if (plan.ranks_size() == world_size) continue;
      v1::RankPlacement& rank = *plan.add_ranks();
      rank.set_rank(plan.ranks_size() - 1);
      rank.set_node(node.name());
      rank.set_device(device.index());
    }
  }
  if (plan.ranks_size() < world_size) {
    *error = fmt::format("needs {} devices, {} are free", world_size, free);
  }
  return plan;
}

void Coordinator::OnMessage(const ConnectionPtr& connection, const v1::WorkerMessage& message) {
  const std::string& node = connection->machine->name();
  if (connection->session == 0) {
    connection->session = next_session_++;
    sessions_[{node, connection->session}] = connection;
  }
  v1::CoreEvent event;
  event.mutable_worker()->set_node(node);
  event.mutable_worker()->set_session(connection->session);
  *event.mutable_worker()->mutable_message() = message;
  Feed(std::move(event));
}

void Coordinator::OnClosed(const ConnectionPtr& connection) {
  if (connection->session == 0) return;
  sessions_.erase({connection->machine->name(), connection->session});
  v1::CoreEvent event;
  event.mutable_session_closed()->set_node(connection->machine->name());
  event.mutable_session_closed()->set_session(connection->session);
  Feed(std::move(event));
}

void Coordinator::Submit(v1::CoreSubmit submit, Answer answer) {
  if (!is_alive_) return;
  submit.set_call(next_call_);
  calls_[next_call_++] = std::move(answer);
  v1::CoreEvent event;
  *event.mutable_submit() = std::move(submit);
  Feed(std::move(event));
}

void Coordinator::Cancel(v1::CoreCancel cancel, Answer answer) {
  if (!is_alive_) return;
  cancel.set_call(next_call_);
  calls_[next_call_++] = std::move(answer);
  v1::CoreEvent event;
  *event.mutable_cancel() = std::move(cancel);
  Feed(std::move(event));
}

void Coordinator::Ask(v1::CoreRequest request, Answer answer) {
  if (!is_alive_) return;
  request.set_call(next_call_);
  calls_[next_call_++] = std::move(answer);
  v1::CoreEvent event;
  *event.mutable_request() = std::move(request);
  Feed(std::move(event));
}

void Coordinator::OnStepReport(const v1::StepReport& report) {
  v1::CoreEvent event;
  *event.mutable_step_report() = report;
  Feed(std::move(event));
}

}  // namespace mega::sim
