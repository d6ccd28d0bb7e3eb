#include "coordinator/core/recovery/resize.h"

#include <algorithm>
#include <set>

#include "absl/status/status.h"
#include "base/clock.h"
#include "coordinator/core/jobs/pause.h"
#include "coordinator/core/jobs/yield.h"
#include "coordinator/core/recovery/records.h"
#include "fmt/core.h"

namespace mega::core {
namespace {

constexpr absl::Duration kShrinkAfter = absl::Seconds(60);

const v1::NodeRange& Range(const v1::Job& job) { return job.resolved_spec().resources().nodes(); }

int64_t Desired(const v1::Job& job) { return std::max<int64_t>(Range(job).desired(), 1); }
int64_t Least(const v1::Job& job) { return Range(job).has_min() ? Range(job).min() : Desired(job); }
int64_t Most(const v1::Job& job) { return Range(job).has_max() ? Range(job).max() : Desired(job); }

// Attempts of releases that did not say have the count of then.
int64_t NodesAsked(const v1::Job& job, const v1::Attempt& attempt) {
  return attempt.nodes_asked() > 0 ? attempt.nodes_asked() : Desired(job);
}

// Devices that a node must have free to count as one of the job's.
int64_t DevicesPerNode(const v1::Job& job) {
  const v1::JobSpec& spec = job.resolved_spec();
  if (spec.resources().has_devices_per_node()) return spec.resources().devices_per_node();
  const int64_t replicas = std::max<int64_t>(spec.parallelism().data_parallel_size(), 1);
  return (replicas + Desired(job) - 1) / Desired(job);
}

// Nodes that could be the job's: schedulable, not left out, enough devices free or its own.
int64_t CountRoom(const Draft& draft, const v1::Job& job, const NodeId& without = "") {
  const State& state = draft.state();
  const std::set<NodeId> left_out = LeftOut(job, FromProto(draft.wall()));
  int64_t count = 0;
  for (const auto& [id, node] : state.durable.nodes) {
    if (id == without || left_out.contains(id) || !IsSchedulable(state, id)) continue;
    if (DevicesFor(state, job.uid(), node) >= DevicesPerNode(job)) ++count;
  }
  return count;
}

// The ladder chose to go on with fewer nodes at once.
bool ShrinksAtOnce(const v1::Job& job) {
  const v1::RecoveryRecord* record = NewestDecision(job);
  return record != nullptr && record->rung() == kShrink && !job.attempts().empty() &&
         record->attempt() == NewestAttempt(job).number();
}

}  // namespace

int64_t WantedNodes(const v1::Job& job) {
  return job.nodes_desired() > 0 ? job.nodes_desired() : Desired(job);
}

bool MayShrink(const v1::Job& job, absl::Time now) {
  const v1::JobSpec& spec = job.resolved_spec();
  const bool is_asked = spec.elastic().on_loss() == kShrink ||
                        std::ranges::count(spec.recovery().ladder(), kShrink) > 0;
  return is_asked && !job.attempts().empty() && Least(job) < WantedNodes(job) &&
         (ShrinksAtOnce(job) || !RungBudget(job, kShrink, now).is_used_up());
}

absl::Duration ShrinksIn(const Draft& draft, const v1::Job& job) {
  if (!MayShrink(job, FromProto(draft.wall())) || ShrinksAtOnce(job)) return absl::ZeroDuration();
  const auto live = draft.state().live.jobs.find(job.uid());
  const v1::Elastic& elastic = job.resolved_spec().elastic();
  const absl::Duration after =
      elastic.has_shrink_after() ? FromProto(elastic.shrink_after()) : kShrinkAfter;
  if (live == draft.state().live.jobs.end() || live->second.no_room_ns() == 0) return after;
  const absl::Duration until = absl::Nanoseconds(live->second.no_room_ns()) + after;
  return std::max(until - draft.clock(), absl::ZeroDuration());
}

int64_t NodesToAsk(const Draft& draft, const v1::Job& job) {
  const int64_t wanted = WantedNodes(job);
  if (!MayShrink(job, FromProto(draft.wall()))) return wanted;
  if (ShrinksIn(draft, job) > absl::ZeroDuration()) return wanted;
  const int64_t room = CountRoom(draft, job);
  return room >= Least(job) ? std::min(room, wanted) : wanted;
}

int64_t NodesAfterLoss(const Draft& draft, const v1::Job& job, const NodeId& lost) {
  const int64_t room = CountRoom(draft, job, lost);
  return room >= Least(job) ? std::min(room, WantedNodes(job)) : 0;
}

v1::JobSpec SpecFor(const v1::Job& job, int64_t nodes) {
  v1::JobSpec spec = job.resolved_spec();
  if (nodes == Desired(job)) return spec;
  spec.mutable_resources()->mutable_nodes()->set_desired(nodes);
  if (spec.parallelism().has_data_parallel_size()) {
    const int64_t replicas = spec.parallelism().data_parallel_size() * nodes / Desired(job);
    spec.mutable_parallelism()->set_data_parallel_size(std::max<int64_t>(replicas, 1));
  }
  return spec;
}

bool IsRightSize(const Draft& draft, const v1::Job& job) {
  const int64_t asked = NodesAsked(job, NewestAttempt(job));
  const int64_t wanted = WantedNodes(job);
  if (ShrinksAtOnce(job) || asked > wanted) return false;
  return asked == wanted || CountRoom(draft, job) <= asked;
}

void NoteSize(Draft& draft, v1::Job& job) {
  v1::Attempt& attempt = NewestAttempt(job);
  attempt.set_nodes_asked(draft.LiveJob(job.uid()).nodes_asked());
  if (job.attempts_size() < 2) {
    if (attempt.nodes_asked() == 0) attempt.set_nodes_asked(WantedNodes(job));
    return;
  }
  const v1::Attempt& before = job.attempts(job.attempts_size() - 2);
  if (attempt.nodes_asked() == 0) attempt.set_nodes_asked(NodesAsked(job, before));  // in place
  const int64_t from = NodesAsked(job, before), to = attempt.nodes_asked();
  if (from == to) return;
  const std::string what = fmt::format("from {} to {} nodes", from, to);
  v1::RecoveryRecord* record = FindRecord(job);
  if (record != nullptr && record->rung() == kRollBack) {
    // It stays what it is: a user's wish, which no budget counts.
    record->set_decided_by(fmt::format("{}; {}", record->decided_by(), what));
  } else if (record != nullptr && to < from && to < WantedNodes(job)) {
    if (record->rung() != kShrink) {
      record->set_rung(std::string(kShrink));
      record->set_decided_by(
          fmt::format("{}; elastic: no room for more after elastic.shrink_after, {}",
                      record->decided_by(), what));
    }
    attempt.set_rung(std::string(kShrink));
  } else if (record == nullptr) {
    v1::RecoveryRecord resized;
    *resized.mutable_time() = draft.wall();
    resized.set_rung(std::string(to > from ? kGrow : kScale));
    resized.set_cause(before.cause());
    resized.set_attempt(before.number());
    resized.set_from_step(attempt.start_step());
    resized.set_lost_steps(std::max<int64_t>(0, before.last_step() - attempt.start_step()));
    resized.set_decided_by(what);
    AddRecord(job, std::move(resized), FromProto(draft.wall()));
    NotePlacement(job);
  }
  draft.AddEvent(
      job.uid(), v1::SEVERITY_WARNING, to < from ? "SHRUNK" : "GROWN",
      fmt::format("attempt {} runs {}; the global batch stays what it is", attempt.number(), what),
      {{"from_nodes", std::to_string(from)},
       {"to_nodes", std::to_string(to)},
       {"data_parallel_size", std::to_string(attempt.plan().layout().data_parallel_size())}});
}

void ResizeIfSaved(Draft& draft, v1::Job& job, int64_t step) {
  const v1::Attempt* attempt = LiveAttempt(job);
  if (attempt == nullptr || attempt->state() != v1::ATTEMPT_STATE_RUNNING || attempt->yields()) {
    return;
  }
  if (attempt->plan().steps() > 0 && step >= attempt->plan().steps()) return;  // it is done
  const int64_t asked = NodesAsked(job, *attempt), wanted = WantedNodes(job);
  const v1::Elastic& elastic = job.resolved_spec().elastic();
  if (asked == wanted) return;
  if (asked < wanted) {
    const bool by_user = job.nodes_desired() > 0;
    if (!by_user && elastic.on_gain() != "next_checkpoint") return;
    const absl::Duration age = FromProto(draft.wall()) - FromProto(attempt->create_time());
    if (!by_user && elastic.has_cooldown() && age < FromProto(elastic.cooldown())) return;
    // Who waits in the queue would take what this job needs.
    if (!draft.state().index.queue.empty() || CountRoom(draft, job) < wanted) return;
  }
  YieldAttempt(draft, job, fmt::format("goes from {} to {} nodes", asked, wanted),
               absl::ZeroDuration());
}

void ScaleJob(Draft& draft, const v1::CoreRequest& request) {
  const v1::Job* found = FindUnfinished(draft, request);
  if (found == nullptr) return;
  const v1::ScaleJobRequest& asked = request.scale_job();
  if (asked.nodes() < Least(*found) || asked.nodes() > Most(*found)) {
    return draft.ReplyError(
        request.call(), absl::StatusCode::kInvalidArgument, "NODES_OUT_OF_RANGE",
        fmt::format("job '{}' may run on {} to {} nodes, not {}; resources.nodes.min and "
                    "max of its job file say so",
                    found->metadata().name(), Least(*found), Most(*found), asked.nodes()));
  }
  const v1::Attempt* attempt = LiveAttempt(*found);
  const bool waits = attempt != nullptr && !asked.now() && WantedNodes(*found) != asked.nodes();
  if (waits && found->resolved_spec().checkpoint().interval_steps() == 0) {
    return draft.ReplyError(
        request.call(), absl::StatusCode::kFailedPrecondition, "NO_NEXT_CHECKPOINT",
        fmt::format("job '{}' makes no checkpoint before its end "
                    "(checkpoint.interval_steps is 0); scale it now instead, which saves "
                    "first",
                    found->metadata().name()));
  }
  if (WantedNodes(*found) != asked.nodes()) {
    v1::Job& job = draft.EditJob(found->uid());
    job.set_nodes_desired(asked.nodes());
    draft.AddEvent(job.uid(), v1::SEVERITY_INFO, "SCALED",
                   fmt::format("a user asked for {} nodes, {}", asked.nodes(),
                               asked.now() ? "now" : "from its next checkpoint on"),
                   {{"nodes", std::to_string(asked.nodes())}});
    if (attempt == nullptr) draft.ClusterChanged();  // a plan on its way is for another number
  }
  // Without room for more it goes on as it is, and looks again at its next checkpoint.
  const int64_t has = attempt == nullptr ? asked.nodes() : NodesAsked(*found, *attempt);
  if (asked.now() &&
      (asked.nodes() < has || (asked.nodes() > has && CountRoom(draft, *found) >= asked.nodes()))) {
    v1::Job& job = draft.EditJob(found->uid());
    YieldAttempt(draft, job, fmt::format("scaled to {} nodes by a user", asked.nodes()),
                 YieldGrace(job));
  }
  draft.ReplyJob(request.call(), request.uid());
}

}  // namespace mega::core
