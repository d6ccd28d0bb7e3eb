#include "coordinator/core/queue/queue.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "coordinator/core/jobs/attempt.h"
#include "coordinator/core/jobs/phase.h"
#include "coordinator/core/queue/placement.h"
#include "coordinator/core/recovery/records.h"
#include "coordinator/core/recovery/resize.h"
#include "fmt/core.h"

namespace mega::core {
namespace {

const v1::Job* Head(const Draft& draft) {
  const auto& queue = draft.state().index.queue;
  return queue.empty() ? nullptr : draft.FindJob(std::get<JobUid>(*queue.begin()));
}

void SetReason(Draft& draft, const JobUid& uid, const std::string& reason) {
  if (draft.FindJob(uid)->reason() != reason) draft.EditJob(uid).set_reason(reason);
}

// What the failure before this attempt was blamed on is no place for it, nor what a rule named.
bool UsesLeftOut(const Draft& draft, const v1::Job& head, const v1::Plan& plan) {
  std::set<NodeId> left_out = LeftOut(head, FromProto(draft.wall()), /*by_rule=*/true);
  if (!head.recoveries().empty() && head.recoveries().rbegin()->leaves_out()) {
    left_out.insert(head.recoveries().rbegin()->node());
  }
  return std::ranges::any_of(plan.ranks(), [&](const v1::RankPlacement& placed) {
    return left_out.contains(placed.node());
  });
}

// The same nodes and the same rank ↔ device map: files, caches and page cache are warm there.
bool StartInPlace(Draft& draft, const v1::Job& head) {
  if (head.phase() != v1::JOB_PHASE_RECOVERING) return false;
  const v1::Plan& plan = head.attempts().rbegin()->plan();
  if (!Fits(draft.state(), plan).ok() || UsesLeftOut(draft, head, plan)) return false;
  if (!IsRightSize(draft, head)) return false;
  draft.LiveJob(head.uid()).set_nodes_asked(0);  // as many as before
  StartAttempt(draft, draft.EditJob(head.uid()), v1::Plan(plan));
  draft.Flush();
  return true;
}

bool HasDevices(const std::vector<v1::Node>& nodes) {
  return std::ranges::any_of(nodes, [](const v1::Node& node) { return !node.devices().empty(); });
}

// Where the job may be placed: not where it failed of late, unless nothing else has room.
std::vector<v1::Node> Candidates(const Draft& draft, const v1::Job& head) {
  const State& state = draft.state();
  const auto without = [&](const std::set<NodeId>& left_out) {
    std::vector<v1::Node> nodes = FreeNodes(state);
    std::erase_if(nodes, [&](const v1::Node& node) { return left_out.contains(node.name()); });
    return nodes;
  };
  const absl::Time now = FromProto(draft.wall());
  if (state.live.jobs.at(head.uid()).left_out_revision() != state.live.cluster_revision) {
    std::vector<v1::Node> nodes = without(LeftOut(head, now));
    if (HasDevices(nodes)) return nodes;
  }
  return without(LeftOut(head, now, /*by_rule=*/true));
}

// It does not fit into the cluster as it is. Asked again when that changes, or when a node that
// was left out may be taken again.
void Refuse(Draft& draft, const JobUid& uid, const std::string& why) {
  v1::JobLive& live = draft.LiveJob(uid);
  live.set_refused_revision(draft.state().live.cluster_revision);
  const absl::Time now = FromProto(draft.wall());
  const absl::Time until = LeftOutUntil(*draft.FindJob(uid), now);
  if (live.no_room_ns() == 0) {
    live.set_no_room_ns(std::max<int64_t>(absl::ToInt64Nanoseconds(draft.clock()), 1));
  }
  absl::Duration again = until - now;
  const absl::Duration shrinks = ShrinksIn(draft, *draft.FindJob(uid));
  if (shrinks > absl::ZeroDuration()) again = std::min(again, shrinks);
  live.set_ask_again_ns(
      again == absl::InfiniteDuration() ? 0 : absl::ToInt64Nanoseconds(draft.clock() + again));
  SetReason(draft, uid, fmt::format("waiting: {}", why));
}

void Ask(Draft& draft, const v1::Job& head) {
  v1::JobLive& live = draft.LiveJob(head.uid());
  const int64_t revision = draft.state().live.cluster_revision;
  const bool is_asked = live.ask_revision() != 0;
  const absl::Duration asked = absl::Nanoseconds(live.asked_ns());
  if (is_asked && draft.clock() < asked + draft.options().plan_timeout) return;
  const bool is_due =
      live.ask_again_ns() != 0 && absl::Nanoseconds(live.ask_again_ns()) <= draft.clock();
  if (live.refused_revision() == revision && !is_due) return;  // nothing has changed since then

  const std::vector<v1::Node> nodes = Candidates(draft, head);
  if (!HasDevices(nodes)) return Refuse(draft, head.uid(), "no node has a free device");
  live.set_nodes_asked(NodesToAsk(draft, head));
  live.set_ask_revision(revision);
  live.set_asked_ns(absl::ToInt64Nanoseconds(draft.clock()));
  v1::AskPlan ask;
  ask.set_job_uid(head.uid());
  ask.set_revision(revision);
  *ask.mutable_resolved_spec() = SpecFor(head, live.nodes_asked());
  *ask.mutable_nodes() = {nodes.begin(), nodes.end()};
  draft.AskPlan(std::move(ask));
}

}  // namespace

void Schedule(Draft& draft) {
  while (const v1::Job* head = Head(draft)) {
    const auto live = draft.state().live.jobs.find(head->uid());
    if (live != draft.state().live.jobs.end() &&
        absl::Nanoseconds(live->second.not_before_ns()) > draft.clock()) {
      return;
    }
    if (StartInPlace(draft, *head)) continue;
    return Ask(draft, *head);
  }
}

void OnPlanMade(Draft& draft, const v1::CorePlanMade& made) {
  const v1::Job* found = draft.FindJob(made.job_uid());
  if (found == nullptr || IsTerminal(found->phase()) || LiveAttempt(*found) != nullptr ||
      found->phase() == v1::JOB_PHASE_PAUSED) {
    return;
  }
  v1::JobLive& live = draft.LiveJob(made.job_uid());
  if (live.ask_revision() == 0 || live.ask_revision() != made.revision()) return;
  live.set_ask_revision(0);
  // Not the head any more, or another cluster: what was planned is not what there is.
  if (Head(draft) != found || draft.state().live.cluster_revision != made.revision()) return;

  if (!made.has_plan() && made.permanent()) {
    return EndJob(draft, draft.EditJob(found->uid()), v1::JOB_PHASE_FAILED,
                  fmt::format("no plan is possible: {}", made.error()));
  }
  const absl::Status fits =
      made.has_plan() ? Fits(draft.state(), made.plan()) : absl::UnavailableError(made.error());
  if (!fits.ok()) {
    const absl::Time now = FromProto(draft.wall());
    const bool may_take_more = live.left_out_revision() != made.revision() &&
                               LeftOut(*found, now) != LeftOut(*found, now, /*by_rule=*/true);
    if (!may_take_more) return Refuse(draft, found->uid(), std::string(fits.message()));
    live.set_left_out_revision(made.revision());  // asked at once, with the nodes it left out
    return;
  }
  v1::Job& job = draft.EditJob(found->uid());
  job.set_phase(v1::JOB_PHASE_PLANNED);
  draft.AddEvent(job.uid(), v1::SEVERITY_INFO, "PLANNED",
                 fmt::format("{} ranks, data parallel {}", made.plan().world_size(),
                             made.plan().layout().data_parallel_size()),
                 {{"world_size", std::to_string(made.plan().world_size())},
                  {"plan_revision", std::to_string(made.revision())}});
  StartAttempt(draft, job, made.plan());
}

}  // namespace mega::core
