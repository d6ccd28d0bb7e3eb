#include "coordinator/core/queue/queue.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "coordinator/core/jobs/attempt.h"
#include "coordinator/core/jobs/phase.h"
#include "coordinator/core/queue/make_room.h"
#include "coordinator/core/queue/placement.h"
#include "coordinator/core/queue/question.h"
#include "coordinator/core/queue/quota.h"
#include "coordinator/core/queue/unfit.h"
#include "coordinator/core/recovery/records.h"
#include "coordinator/core/recovery/resize.h"
#include "fmt/core.h"

namespace mega::core {
namespace {

// Calls `visit` for jobs without a live attempt, in the order in which they get devices, until it
// says true.
template <typename Visit>
void InOrder(const State& state, const Visit& visit) {
  if (state.options.mutants.ignore_priority) {
    std::set<std::pair<absl::Time, JobUid>> by_age;
    for (const auto& [priority, rank, time, uid] : state.index.queue) by_age.insert({time, uid});
    for (const auto& [time, uid] : by_age) {
      if (visit(uid)) return;
    }
    return;
  }
  for (const QueueKey& key : state.index.queue) {
    if (visit(std::get<JobUid>(key))) return;
  }
}

// Whose turn it is; null when all are passed.
const v1::Job* Next(const Draft& draft) {
  const v1::Job* next = nullptr;
  InOrder(draft.state(), [&](const JobUid& uid) {
    if (!IsPassed(draft.state(), uid)) next = draft.FindJob(uid);
    return next != nullptr;
  });
  return next;
}

// What the failure before this attempt was blamed on is no place for it, nor what a rule named.
bool UsesLeftOut(const Draft& draft, const v1::Job& next, const v1::Plan& plan) {
  std::set<NodeId> left_out = LeftOut(next, FromProto(draft.wall()), /*by_rule=*/true);
  if (!next.recoveries().empty() && next.recoveries().rbegin()->leaves_out()) {
    left_out.insert(next.recoveries().rbegin()->node());
  }
  return std::ranges::any_of(plan.ranks(), [&](const v1::RankPlacement& placed) {
    return left_out.contains(placed.node());
  });
}

// The same nodes and the same rank ↔ device map: files, caches and page cache are warm there.
bool StartInPlace(Draft& draft, const v1::Job& next) {
  if (next.phase() != v1::JOB_PHASE_RECOVERING) return false;
  const v1::Plan& plan = NewestAttempt(next).plan();
  if (!Fits(draft.state(), plan).ok() || UsesLeftOut(draft, next, plan)) return false;
  if (!IsRightSize(draft, next)) return false;
  draft.LiveJob(next.uid()).set_nodes_asked(0);  // as many as before
  StartAttempt(draft, draft.EditJob(next.uid()), v1::Plan(plan));
  draft.Flush();
  return true;
}

// Where the job may be placed: not where it failed of late, unless nothing else has room.
std::vector<v1::Node> Candidates(const Draft& draft, const v1::Job& next) {
  const State& state = draft.state();
  const absl::Time now = FromProto(draft.wall());
  if (state.live.jobs.at(next.uid()).left_out_revision() != state.live.cluster_revision) {
    std::vector<v1::Node> nodes = Without(FreeNodes(state), LeftOut(next, now));
    if (HasDevices(nodes)) return nodes;
  }
  return Without(FreeNodes(state), LeftOut(next, now, /*by_rule=*/true));
}

// Asked again when the cluster changes, or when a node that was left out may be taken again.
void Wait(Draft& draft, const JobUid& uid, const std::string& why) {
  v1::JobLive& live = draft.LiveJob(uid);
  SetRefusedAt(live, draft.state().live.cluster_revision);
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
  SetReason(draft, uid, fmt::format("waiting: {}{}", why, LeftOutText(*draft.FindJob(uid), now)));
}

// There is no room for it now. Would it help that others yield, could it ever fit?
void Refuse(Draft& draft, const JobUid& uid, const std::string& why) {
  Wait(draft, uid, why);
  const v1::Job& job = *draft.FindJob(uid);
  const std::optional<Room> room = MakeRoom(draft, job);
  if (!room) return AskIfIdle(draft, job);
  if (room->victims.empty()) return AskAgainWithin(draft, draft.LiveJob(uid), kEndsWithin);
  PutQuestion(draft, job, Question::kVictims,
              Without(NodesWithout(draft.state(), room->ended),
                      LeftOut(job, FromProto(draft.wall()), /*by_rule=*/true)));
}

void Ask(Draft& draft, const v1::Job& next, UnfitJobs& unfit) {
  v1::JobLive& live = draft.LiveJob(next.uid());
  // A plan on what might have been at another time is not worth waiting for.
  const bool is_void =
      QuestionOf(live.ask_revision()) != Question::kNow &&
      ClusterRevisionOf(live.ask_revision()) != draft.state().live.cluster_revision;
  if (!is_void && IsAsked(draft, live)) return;
  const bool is_known = RefusedAt(live) == draft.state().live.cluster_revision;
  if (is_known && !IsDue(draft, live)) return;  // nothing has changed since then
  if (unfit.PassIfTooLarge(next)) return;
  const std::vector<v1::Node> nodes = Candidates(draft, next);
  if (!HasDevices(nodes)) {
    live.set_nodes_asked(NodesToAsk(draft, next));
    return Refuse(draft, next.uid(), "no node has a free device");
  }
  PutQuestion(draft, next, Question::kNow, nodes);
}

// One look along the queue. True: a job was started or is no longer passed, and the queue is
// another.
bool StartNext(Draft& draft) {
  bool is_started = false;
  UnfitJobs unfit(draft);
  InOrder(draft.state(), [&](const JobUid& uid) {
    const v1::Job& job = *draft.FindJob(uid);
    const v1::JobLive& live = draft.LiveJob(uid);
    if (absl::Nanoseconds(live.not_before_ns()) > draft.clock()) {
      return !IsPassed(draft.state(), uid);
    }
    if (const std::string over = OverQuota(draft.state(), job); !over.empty()) {
      SetReason(draft, uid, fmt::format("waiting: {}", over));
      ForgetUnfit(draft.LiveJob(uid));  // of a fleet of long ago, when its turn comes
      return false;
    }
    if (StartInPlace(draft, job)) return is_started = true;
    if (IsUnfit(draft.state(), uid)) {
      unfit.LookAgain(job);
    } else {
      Ask(draft, job, unfit);
    }
    return !IsUnfit(draft.state(), uid) || draft.options().mutants.unfit_blocks;
  });
  return is_started || unfit.Settle();
}

}  // namespace

bool IsUnfit(const State& state, const JobUid& uid) {
  const auto live = state.live.jobs.find(uid);
  return live != state.live.jobs.end() && UnfitAt(live->second) != 0;
}

bool IsPassed(const State& state, const JobUid& uid) {
  return (IsUnfit(state, uid) && !state.options.mutants.unfit_blocks) ||
         !OverQuota(state, state.durable.jobs.at(uid)).empty();
}

void Schedule(Draft& draft) {
  while (StartNext(draft)) {
  }
}

void OnPlanMade(Draft& draft, const v1::CorePlanMade& made) {
  const v1::Job* found = draft.FindJob(made.job_uid());
  if (found == nullptr || !IsQueued(*found)) return;
  v1::JobLive& live = draft.LiveJob(made.job_uid());
  if (live.ask_revision() == 0 || live.ask_revision() != made.revision()) return;
  live.set_ask_revision(0);
  if (!made.has_plan() && made.permanent()) {
    return EndJob(draft, draft.EditJob(found->uid()), v1::JOB_PHASE_FAILED,
                  fmt::format("no plan is possible: {}", made.error()));
  }
  const Question question = QuestionOf(made.revision());
  if (question == Question::kIdle) return OnIdlePlan(draft, *found, made);
  // Not its turn any more, or another cluster: what was planned is not what there is.
  const int64_t revision = ClusterRevisionOf(made.revision());
  if (Next(draft) != found || draft.state().live.cluster_revision != revision) {
    return ForgetRefusal(live);
  }
  if (question == Question::kVictims) {
    return made.has_plan() ? Preempt(draft, *found, made.plan()) : AskIfIdle(draft, *found);
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
  const std::string over = OverQuota(draft.state(), *found, made.plan().world_size());
  if (!over.empty()) return Wait(draft, found->uid(), over);
  v1::Job& job = draft.EditJob(found->uid());
  job.set_phase(v1::JOB_PHASE_PLANNED);
  draft.AddEvent(job.uid(), v1::SEVERITY_INFO, "PLANNED",
                 fmt::format("{} ranks, data parallel {}", made.plan().world_size(),
                             made.plan().layout().data_parallel_size()),
                 {{"world_size", std::to_string(made.plan().world_size())},
                  {"plan_revision", std::to_string(made.revision())}});
  v1::Plan plan = made.plan();
  if (draft.options().mutants.partial_gang && plan.ranks_size() > 1) {
    plan.mutable_ranks()->RemoveLast();
  }
  StartAttempt(draft, job, std::move(plan));
}

}  // namespace mega::core
