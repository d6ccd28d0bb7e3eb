#include "tests/sim/invariants.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/clock.h"
#include "coordinator/core/apply.h"
#include "coordinator/core/jobs/attempt.h"
#include "coordinator/core/jobs/goodput.h"
#include "coordinator/core/recovery/records.h"
#include "coordinator/core/waiting.h"
#include "tests/sim/machine.h"

namespace mega::sim {
namespace {

bool Executes(const Engine& engine) { return engine.is_alive && !engine.machine->IsFrozen(); }

// The rank that a message speaks of; null when it speaks of none.
struct About {
  std::string job_uid;
  int64_t attempt = 0;
  int64_t epoch = 0;
};
std::optional<About> RankOf(const v1::CoreEvent& event) {
  const auto of = [](const auto& m) { return About{m.job_uid(), m.attempt(), m.epoch()}; };
  if (event.has_step_report()) return of(event.step_report());
  const v1::WorkerMessage& message = event.worker().message();
  if (message.has_rank_ready()) return of(message.rank_ready().rank());
  if (message.has_rank_exited()) return of(message.rank_exited().rank());
  if (message.has_rank_progress()) return of(message.rank_progress().rank());
  if (message.has_checkpoint_part()) return of(message.checkpoint_part());
  if (message.has_checkpoint_failed()) return of(message.checkpoint_failed().rank());
  return std::nullopt;
}

bool IsStale(const core::State& state, const About& about) {
  const auto job = state.durable.jobs.find(about.job_uid);
  if (job == state.durable.jobs.end() || job->second.attempts().empty()) return true;
  const v1::Attempt& newest = *job->second.attempts().rbegin();
  return newest.number() != about.attempt || newest.epoch() != about.epoch;
}

double SumSeconds(const v1::Goodput& ledger) {
  double seconds = 0;
  for (const v1::GoodputCause& cause : ledger.causes()) seconds += cause.seconds();
  return seconds;
}

}  // namespace

void Invariants::BeforeStep(const core::State& state, const v1::CoreEvent& event) {
  is_stale_ = false;
  if (const auto about = RankOf(event)) is_stale_ = IsStale(state, *about);
  lost_.clear();
  for (const auto& [id, node] : state.durable.nodes) {
    if (node.state() == v1::NODE_STATE_LOST) lost_.insert(id);
  }
  opened_.clear();
  for (const core::JobUid& uid : state.index.unfinished) {
    opened_[uid] = FromProto(state.durable.jobs.at(uid).goodput().open_time());
  }
}

void Invariants::AfterStep(const core::State& state, const v1::CoreEvent& event,
                           const core::Decision& decision) {
  if (is_stale_) {
    const About about = *RankOf(event);
    for (const v1::Mutation& mutation : decision.mutations) {
      const bool is_about_job = mutation.put_job().uid() == about.job_uid ||
                                mutation.put_event().job_uid() == about.job_uid;
      if (is_about_job) {
        world_.Fail("a message of attempt {} epoch {} of job {} changed it, though it is stale",
                    about.attempt, about.epoch, about.job_uid);
      }
    }
  }
  for (const core::JobUid& uid : state.index.unfinished) {
    if (core::WaitingFor(state, uid).empty()) {
      world_.Fail("nothing will ever wake job {}, which is {}", uid,
                  v1::JobPhase_Name(state.durable.jobs.at(uid).phase()));
    }
  }
  NoteUnfit(state);
  if (decision.mutations.empty()) return;
  for (const v1::Mutation& mutation : decision.mutations) {
    if (mutation.put_event().reason() == "HANG") CheckHang(state, mutation.put_event());
    const bool is_lost = mutation.put_node().state() == v1::NODE_STATE_LOST &&
                         !lost_.contains(mutation.put_node().name());
    if (is_lost && world_.now() < horizon_) {
      world_.Fail("{} is lost though the coordinator has not watched it for a lease: {} and not {}",
                  mutation.put_node().name(), absl::FormatDuration(world_.now()),
                  absl::FormatDuration(horizon_));
    }
  }
  for (const v1::Mutation& mutation : decision.mutations) {
    if (!mutation.has_put_job()) continue;
    CheckGang(mutation.put_job());
    CheckDeadRanks(mutation.put_job());
    CheckStart(state, mutation.put_job());
    CheckYield(state, mutation.put_job());
    CheckGoodput(mutation.put_job());
  }
  CheckDevices(state);
}

void Invariants::AfterCommit(const core::State& stored,
                             const std::vector<v1::Mutation>& mutations) {
  deleted_.clear();
  for (const v1::Mutation& mutation : mutations) {
    if (mutation.put_command().command().has_delete_checkpoint()) {
      NoteRemoval(mutation.put_command());
    }
    const v1::JobEvent& event = mutation.put_event();
    if (event.reason() != "CHECKPOINT_DELETED") continue;
    deleted_.emplace(event.job_uid(), std::stoll(event.fields().at("step")));
  }
  for (const v1::Mutation& mutation : mutations) {
    if (!mutation.has_put_job()) continue;
    const v1::Job& job = mutation.put_job();
    const auto [terminal, is_new] = terminal_.try_emplace(job.uid(), v1::JOB_PHASE_UNSPECIFIED);
    if (core::IsTerminal(terminal->second) && job.phase() != terminal->second) {
      world_.Fail("job {} was {} and is now {}", job.uid(), v1::JobPhase_Name(terminal->second),
                  v1::JobPhase_Name(job.phase()));
    }
    terminal->second = job.phase();
    CheckCheckpoints(job);
  }
  const v1::Meta& meta = stored.durable.meta;
  if (meta.next_epoch() < next_epoch_ || meta.revision() < revision_) {
    world_.Fail("next epoch {} or revision {} went back (from {}, {})", meta.next_epoch(),
                meta.revision(), next_epoch_, revision_);
  }
  next_epoch_ = meta.next_epoch();
  revision_ = meta.revision();
  for (const auto& [request_id, uid] : acked_) {
    if (!stored.durable.jobs.contains(uid)) world_.Fail("acked job {} is lost", uid);
  }
}

void Invariants::OnRankLive(const Engine& engine) {
  const std::string& uid = engine.ref.job_uid();
  started_[{uid, engine.ref.epoch()}][engine.ref.rank()] = engine.shared_from_this();
  const auto [owner, is_new] = epochs_.try_emplace(engine.ref.epoch(), uid, engine.ref.attempt());
  if (owner->second != std::pair(uid, engine.ref.attempt())) {
    world_.Fail("epoch {} was given to job {} attempt {} and to job {} attempt {}",
                engine.ref.epoch(), owner->second.first, owner->second.second, uid,
                engine.ref.attempt());
  }
  std::erase_if(live_, [](const auto& other) { return !other->is_alive && !other->is_dying; });
  for (const auto& other : live_) {
    if (other.get() == &engine || (!Executes(*other) && !other->is_dying)) continue;
    const bool is_same_rank = other->ref.job_uid() == uid && other->ref.rank() == engine.ref.rank();
    if (is_same_rank && !other->is_dying) {
      world_.Fail("rank {} of job {} runs twice: epoch {} on {} and epoch {} on {}",
                  engine.ref.rank(), uid, other->ref.epoch(), other->machine->name(),
                  engine.ref.epoch(), engine.machine->name());
    }
    if (other->machine == engine.machine && other->device == engine.device) {
      world_.Fail("device {} of {} is used by job {} epoch {} and job {} epoch {}", engine.device,
                  engine.machine->name(), other->ref.job_uid(), other->ref.epoch(), uid,
                  engine.ref.epoch());
    }
  }
  live_.insert(engine.shared_from_this());
}

bool Invariants::IsPeerDead(const Engine& engine) const {
  const auto& gang = started_.at({engine.ref.job_uid(), engine.ref.epoch()});
  return std::ranges::any_of(gang, [](const auto& entry) {
    return !entry.second->is_alive && !entry.second->is_finished;
  });
}

void Invariants::OnMoved(const Engine& engine) { moved_[engine.ref.epoch()] = world_.now(); }

int64_t Invariants::NewestStepPossible(const Engine& engine) const {
  int64_t step = std::numeric_limits<int64_t>::max();
  for (const auto& [rank, other] : started_.at({engine.ref.job_uid(), engine.ref.epoch()})) {
    if (other->is_stuck && other->is_alive) step = std::min(step, other->step);
  }
  return step;
}

// What stands still, and nothing else, may be called a hang; and who is named must hold it up.
void Invariants::CheckHang(const core::State& state, const v1::JobEvent& event) {
  const v1::Job& job = state.durable.jobs.at(event.job_uid());
  const int64_t epoch = job.attempts().rbegin()->epoch();
  const absl::Duration still = world_.now() - moved_[epoch];
  if (still < absl::Seconds(kShortestHang) - absl::Milliseconds(500)) {
    world_.Fail("job {} epoch {} was said to hang {} after it moved", job.uid(), epoch,
                absl::FormatDuration(still));
  }
  const auto gang = started_.find({job.uid(), epoch});
  const auto rank = event.fields().find("rank");
  if (gang == started_.end() || rank == event.fields().end() || rank->second.empty()) return;
  const auto named = gang->second.find(std::stoll(rank->second));
  const auto holds_up = [](const Engine& engine) {
    return engine.is_stuck || !engine.is_ready || !Executes(engine);
  };
  const bool is_any =
      std::ranges::any_of(gang->second, [&](const auto& entry) { return holds_up(*entry.second); });
  if (is_any && named != gang->second.end() && !holds_up(*named->second)) {
    world_.Fail("rank {} of job {} epoch {} was named, and others hold it up", rank->second,
                job.uid(), epoch);
  }
}

void Invariants::OnPartWritten(const v1::CheckpointPart& part) {
  written_.insert({part.job_uid(), part.epoch(), part.step(), part.rank()});
}

void Invariants::OnPartTakenBack(const v1::RankRef& rank, int64_t step) {
  written_.erase({rank.job_uid(), rank.epoch(), step, rank.rank()});
}

void Invariants::NoteRemoval(const v1::PendingCommand& pending) {
  const v1::DeleteCheckpoint& order = pending.command().delete_checkpoint();
  int64_t& meant = removals_[{pending.node(), pending.command().seq()}];
  for (const auto& [job, epoch, step] : committed_) {
    if (job == order.job_uid() && step == order.step()) meant = std::max(meant, epoch);
  }
}

void Invariants::OnRemoved(const core::State& stored, const std::string& node,
                           const v1::Command& command) {
  const v1::DeleteCheckpoint& order = command.delete_checkpoint();
  const int64_t meant = removals_.at({node, command.seq()});
  std::erase_if(written_, [&](const auto& part) {
    const auto& [job, epoch, step, rank] = part;
    if (job != order.job_uid() || step != order.step()) return false;
    if (order.epoch() != 0 && epoch > order.epoch()) return false;
    if (epoch > meant) {
      world_.Fail("{} removes what epoch {} of job {} saved for step {}, and epoch {} is meant",
                  node, epoch, job, step, meant);
    }
    return true;
  });
  const auto job = stored.durable.jobs.find(order.job_uid());
  if (job != stored.durable.jobs.end()) CheckParts(job->second);
}

// What is committed can be loaded.
void Invariants::CheckParts(const v1::Job& job) {
  for (const v1::Manifest& manifest : job.checkpoints()) {
    const int64_t ranks = manifest.tensors(0).global_shape(0);
    for (int64_t rank = 0; rank < ranks; ++rank) {
      if (written_.contains({job.uid(), manifest.epoch(), manifest.step(), rank})) continue;
      world_.Fail("the checkpoint of step {} of job {} lacks the part of rank {}", manifest.step(),
                  job.uid(), rank);
    }
  }
}

void Invariants::OnAcked(const core::State& stored, const std::string& request_id,
                         const std::string& uid) {
  const auto [known, is_new] = acked_.try_emplace(request_id, uid);
  if (known->second != uid) {
    world_.Fail("request {} made two jobs, {} and {}", request_id, known->second, uid);
  }
  if (!stored.durable.jobs.contains(uid)) {
    world_.Fail("job {} was acked before it was durable", uid);
  }
}

void Invariants::CheckDevices(const core::State& state) {
  std::map<std::pair<std::string, int64_t>, std::string> owners;
  for (const core::JobUid& uid : state.index.unfinished) {
    const v1::Attempt* attempt = core::LiveAttempt(state.durable.jobs.at(uid));
    if (attempt == nullptr) continue;
    for (const v1::RankState& rank : attempt->ranks()) {
      const auto [owner, is_free] = owners.try_emplace({rank.node(), rank.device()}, uid);
      if (!is_free) {
        world_.Fail("device {} of {} belongs to job {} and to job {}", rank.device(), rank.node(),
                    owner->second, uid);
      }
    }
  }
}

// What the coordinator counts as dead must be dead: its devices and its epoch go to others.
void Invariants::CheckDeadRanks(const v1::Job& job) {
  if (job.attempts().empty()) return;
  const v1::Attempt& newest = *job.attempts().rbegin();
  const auto gang = started_.find({job.uid(), newest.epoch()});
  if (gang == started_.end()) return;
  for (const v1::RankState& rank : newest.ranks()) {
    const bool is_over = newest.state() == v1::ATTEMPT_STATE_ENDED;
    if (core::MayRun(rank) && !is_over) continue;
    const auto engine = gang->second.find(rank.rank());
    if (engine == gang->second.end()) continue;
    if (Executes(*engine->second)) {
      world_.Fail("rank {} of job {} epoch {} counts as dead and runs on {}", rank.rank(),
                  job.uid(), newest.epoch(), rank.node());
    }
  }
}

void Invariants::CheckCheckpoints(const v1::Job& job) {
  int64_t& newest = newest_checkpoint_[job.uid()];
  auto& went_back = went_back_[job.uid()];
  for (const v1::RecoveryRecord& record : job.recoveries()) {
    if (record.rung() != core::kRollBack) continue;
    const auto [back, is_new] = goings_back_.emplace(job.uid(), record.attempt(),
                                                     record.from_step(), FromProto(record.time()));
    if (!is_new) continue;
    went_back = {record.attempt(), record.from_step()};
    newest = record.from_step();
  }
  CheckParts(job);
  if (deleted_.contains({job.uid(), newest})) {
    newest = job.checkpoints().empty() ? 0 : job.checkpoints().rbegin()->step();
  }
  if (job.checkpoints().empty()) {
    if (newest != 0) world_.Fail("job {} has lost its checkpoint of step {}", job.uid(), newest);
    return;
  }
  const v1::Manifest& last = *job.checkpoints().rbegin();
  if (last.step() < newest) {
    world_.Fail("the checkpoint of job {} went back from step {} to {}", job.uid(), newest,
                last.step());
  }
  if (last.step() == newest) return;
  if (last.attempt() <= went_back.first) {
    world_.Fail("job {} went back to step {} behind attempt {}, which then saved step {}",
                job.uid(), went_back.second, last.attempt(), last.step());
  }
  newest = last.step();
  committed_.emplace(job.uid(), last.epoch(), last.step());
}

void Invariants::CheckGang(const v1::Job& job) {
  if (job.attempts().empty()) return;
  const v1::Attempt& newest = *job.attempts().rbegin();
  const int64_t wanted = job.resolved_spec().parallelism().data_parallel_size();
  if (newest.ranks_size() != wanted) {
    world_.Fail("attempt {} of job {} has {} ranks of {}", newest.number(), job.uid(),
                newest.ranks_size(), wanted);
  }
  if (core::IsTerminal(job.phase()) && newest.state() != v1::ATTEMPT_STATE_ENDED) {
    world_.Fail("job {} is {} while its attempt {} has not ended", job.uid(),
                v1::JobPhase_Name(job.phase()), newest.number());
  }
}

// To its end; or, the clock having been set back since, to where its last span began.
void Invariants::CheckEndedGoodput(const v1::Job& job) {
  if (job.goodput().has_open_time()) world_.Fail("the ledger of ended job {} is open", job.uid());
  const auto opened = opened_.find(job.uid());
  if (opened == opened_.end()) return;  // it has ended before
  const absl::Time end = std::max(opened->second, FromProto(job.end_time()));
  const double span = absl::ToDoubleSeconds(end - FromProto(job.create_time()));
  const double seconds = SumSeconds(job.goodput());
  if (std::abs(seconds - span) <= 1e-3) return;
  world_.Fail("the ledger of ended job {} has {} s of {} s", job.uid(), seconds, span);
}

// Every second since it was submitted has one cause, whatever the clock on the wall was set to.
void Invariants::CheckGoodput(const v1::Job& job) {
  const v1::Goodput& ledger = job.goodput();
  if (core::IsTerminal(job.phase())) return CheckEndedGoodput(job);
  const double seconds = SumSeconds(ledger);
  const double span =
      absl::ToDoubleSeconds(FromProto(ledger.open_time()) - FromProto(job.create_time()));
  const v1::Attempt* attempt = core::LiveAttempt(job);
  const int64_t held = attempt == nullptr ? 0 : attempt->ranks_size();
  if (std::abs(seconds - span) > 1e-3 || ledger.open_devices() != held ||
      ledger.open_cause() != core::CauseOfTime(job)) {
    world_.Fail("the ledger of job {} has {} s of {} s, and {} devices of {} are {}", job.uid(),
                seconds, span, ledger.open_devices(), held, ledger.open_cause());
  }
}

void Invariants::CheckIndex(const core::State& state) {
  core::State rebuilt;
  for (const auto& [uid, job] : state.durable.jobs) {
    v1::Mutation mutation;
    *mutation.mutable_put_job() = job;
    core::Apply(rebuilt, mutation);
  }
  if (rebuilt.index != state.index) {
    world_.Fail("the index is not what the records say");
  }
}

void Invariants::OnSent(const core::State& stored, const v1::SendToWorker& send) {
  const v1::CheckpointRejected& rejected = send.message().command().checkpoint_rejected();
  if (committed_.contains({rejected.job_uid(), rejected.epoch(), rejected.step()})) {
    world_.Fail("{} is to take back its parts of step {} of job {}, which was committed",
                send.node(), rejected.step(), rejected.job_uid());
  }
  const v1::WitnessSet& set = send.message().lease().witnesses();
  if (set.number() == 0) return;
  const auto node = stored.durable.nodes.find(send.node());
  const bool is_known = node != stored.durable.nodes.end() &&
                        !node->second.witness_sets().empty() &&
                        node->second.witness_sets().rbegin()->number() >= set.number();
  if (!is_known) {
    world_.Fail("witness set {} is sent to {} before it is durable", set.number(), send.node());
  }
}

void Invariants::CheckWitnesses(const core::State& state) {
  for (const auto& [id, node] : state.durable.nodes) {
    if (node.state() != v1::NODE_STATE_READY) {
      world_.Fail("all is well and {} is {}", id, v1::NodeState_Name(node.state()));
      continue;
    }
    if (node.witness_sets_size() != 1) {
      world_.Fail("{} may hold {} witness sets", id, node.witness_sets_size());
      continue;
    }
    const v1::WitnessSet& set = node.witness_sets(0);
    std::set<std::string> named;
    for (const v1::Witness& witness : set.witnesses()) {
      const auto other = state.durable.nodes.find(witness.node());
      const bool is_there = other != state.durable.nodes.end() && witness.node() != id &&
                            other->second.incarnation() == witness.incarnation();
      if (!is_there)
        world_.Fail("{} has left, or is itself, and is a witness of {}", witness.node(), id);
      named.insert(witness.node());
    }
    const size_t wanted = std::min<size_t>(3, state.durable.nodes.size() - 1);
    if (named.size() != wanted) {
      world_.Fail("{} has {} witnesses, not {}", id, named.size(), wanted);
    }
  }
}

}  // namespace mega::sim
