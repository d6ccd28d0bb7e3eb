#include "coordinator/core/queue/queue.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "coordinator/core/jobs/attempt.h"
#include "coordinator/core/jobs/phase.h"
#include "coordinator/core/jobs/yield.h"
#include "coordinator/core/queue/demand.h"
#include "coordinator/core/queue/placement.h"
#include "coordinator/core/queue/question.h"
#include "coordinator/core/queue/quota.h"
#include "coordinator/core/queue/victims.h"
#include "coordinator/core/recovery/records.h"
#include "coordinator/core/recovery/resize.h"
#include "fmt/core.h"

namespace mega::core {
namespace {

constexpr int kMostNamed = 3;  // jobs in one sentence
// Who waits for jobs that give their devices up looks this often whether they ever will.
constexpr absl::Duration kEndsWithin = absl::Minutes(1);
// A job that recovers keeps its place so long, though the fleet has become too small for it.
constexpr absl::Duration kKeepsPlace = absl::Minutes(5);

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

void SetReason(Draft& draft, const JobUid& uid, const std::string& reason) {
  if (draft.FindJob(uid)->reason() != reason) draft.EditJob(uid).set_reason(reason);
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
  const v1::Plan& plan = next.attempts().rbegin()->plan();
  if (!Fits(draft.state(), plan).ok() || UsesLeftOut(draft, next, plan)) return false;
  if (!IsRightSize(draft, next)) return false;
  draft.LiveJob(next.uid()).set_nodes_asked(0);  // as many as before
  StartAttempt(draft, draft.EditJob(next.uid()), v1::Plan(plan));
  draft.Flush();
  return true;
}

bool HasDevices(const std::vector<v1::Node>& nodes) {
  return std::ranges::any_of(nodes, [](const v1::Node& node) { return !node.devices().empty(); });
}

std::vector<v1::Node> Without(std::vector<v1::Node> nodes, const std::set<NodeId>& left_out) {
  std::erase_if(nodes, [&](const v1::Node& node) { return left_out.contains(node.name()); });
  return nodes;
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

void Put(Draft& draft, const v1::Job& job, Question question, const std::vector<v1::Node>& nodes) {
  v1::JobLive& live = draft.LiveJob(job.uid());
  if (question != Question::kVictims) live.set_nodes_asked(NodesToAsk(draft, job));
  live.set_ask_revision(ToRevision(question, draft.state().live.cluster_revision));
  live.set_asked_ns(absl::ToInt64Nanoseconds(draft.clock()));
  v1::AskPlan ask;
  ask.set_job_uid(job.uid());
  ask.set_revision(live.ask_revision());
  *ask.mutable_resolved_spec() = SpecFor(job, live.nodes_asked());
  *ask.mutable_nodes() = {nodes.begin(), nodes.end()};
  draft.AskPlan(std::move(ask));
}

void AskAgainWithin(Draft& draft, v1::JobLive& live, absl::Duration span) {
  const int64_t then = absl::ToInt64Nanoseconds(draft.clock() + span);
  if (live.ask_again_ns() == 0 || live.ask_again_ns() > then) live.set_ask_again_ns(then);
}

// A job that may shrink is not passed before it does; one that recovers not at once: a node that
// was lost may come back, or another for it.
void AskIfIdle(Draft& draft, const v1::Job& job) {
  const absl::Time now = FromProto(draft.wall());
  if (MayShrink(job, now)) return;
  if (job.phase() == v1::JOB_PHASE_RECOVERING) {
    const absl::Duration left = FromProto(job.attempts().rbegin()->end_time()) + kKeepsPlace - now;
    if (left > absl::ZeroDuration()) return AskAgainWithin(draft, draft.LiveJob(job.uid()), left);
  }
  const std::vector<v1::Node> nodes =
      Without(FleetNodes(draft.state()), LeftOut(job, now, /*by_rule=*/true));
  if (HasDevices(nodes)) Put(draft, job, Question::kIdle, nodes);
}

struct Room {
  std::set<JobUid> victims;  // would have to yield; empty: it is enough to wait for those that end
  std::set<JobUid> ended;    // with those that end anyway
};
// Who would have to give way for the job; nullopt: that would not help.
std::optional<Room> MakeRoom(const Draft& draft, const v1::Job& job) {
  const State& state = draft.state();
  const absl::Time now = FromProto(draft.wall());
  Room room;
  std::vector<Holder> holders;
  for (const JobUid& uid : state.index.unfinished) {
    const v1::Job& other = *draft.FindJob(uid);
    const bool may_matter = state.index.ending.contains(uid) ||
                            PriorityOf(other) < PriorityOf(job) ||
                            state.options.mutants.preempt_equals;
    if (!may_matter || LiveAttempt(other) == nullptr) continue;
    holders.push_back(HolderOf(other, now));
    if (holders.back().is_ending) room.ended.insert(uid);
  }
  if (holders.empty()) return std::nullopt;
  std::map<NodeId, int64_t> free;
  std::vector<int64_t> counts;
  for (const v1::Node& node : Without(FreeNodes(state), LeftOut(job, now, /*by_rule=*/true))) {
    free[node.name()] = node.devices_size();
    counts.push_back(node.devices_size());
  }
  const auto live = state.live.jobs.find(job.uid());
  const int64_t nodes = live == state.live.jobs.end() ? 0 : live->second.nodes_asked();
  const Demand demand = DemandOf(state, job, nodes);
  if (HasRoom(counts, demand)) return std::nullopt;  // it is not their number that it lacks
  const std::optional<std::vector<JobUid>> victims =
      ChooseVictims(free, holders, PriorityOf(job), demand, state.options.mutants.preempt_equals);
  if (!victims) return std::nullopt;
  room.victims.insert(victims->begin(), victims->end());
  room.ended.insert(victims->begin(), victims->end());
  return room;
}

// Asked again when the cluster changes, or when a node that was left out may be taken again.
void Wait(Draft& draft, const JobUid& uid, const std::string& why) {
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

// There is no room for it now. Would it help that others yield, could it ever fit?
void Refuse(Draft& draft, const JobUid& uid, const std::string& why) {
  Wait(draft, uid, why);
  const v1::Job& job = *draft.FindJob(uid);
  const std::optional<Room> room = MakeRoom(draft, job);
  if (!room) return AskIfIdle(draft, job);
  if (room->victims.empty()) return AskAgainWithin(draft, draft.LiveJob(uid), kEndsWithin);
  Put(draft, job, Question::kVictims,
      Without(NodesWithout(draft.state(), room->ended),
              LeftOut(job, FromProto(draft.wall()), /*by_rule=*/true)));
}

// True: an answer is on its way. One that never came is not waited for any longer.
bool IsAsked(Draft& draft, v1::JobLive& live) {
  if (live.ask_revision() == 0) return false;
  const absl::Duration asked = absl::Nanoseconds(live.asked_ns());
  if (draft.clock() < asked + draft.options().plan_timeout) return true;
  live.set_ask_revision(0);
  if (live.refused_revision() > 0) live.set_refused_revision(0);
  return false;
}

bool IsDue(const Draft& draft, const v1::JobLive& live) {
  return live.ask_again_ns() != 0 && absl::Nanoseconds(live.ask_again_ns()) <= draft.clock();
}

void Ask(Draft& draft, const v1::Job& next) {
  v1::JobLive& live = draft.LiveJob(next.uid());
  // A plan on what might have been at another time is not worth waiting for.
  const bool is_void =
      QuestionOf(live.ask_revision()) != Question::kNow &&
      ClusterRevisionOf(live.ask_revision()) != draft.state().live.cluster_revision;
  if (!is_void && IsAsked(draft, live)) return;
  const bool is_known = live.refused_revision() == draft.state().live.cluster_revision;
  if (is_known && !IsDue(draft, live)) return;  // nothing has changed since then
  const std::vector<v1::Node> nodes = Candidates(draft, next);
  if (!HasDevices(nodes)) {
    live.set_nodes_asked(NodesToAsk(draft, next));
    return Refuse(draft, next.uid(), "no node has a free device");
  }
  Put(draft, next, Question::kNow, nodes);
}

// Does it fit by now?
void AskUnfit(Draft& draft, const v1::Job& job) {
  v1::JobLive& live = draft.LiveJob(job.uid());
  if (IsAsked(draft, live)) return;
  const bool is_due = IsDue(draft, live);
  if (-live.refused_revision() == draft.state().live.cluster_revision && !is_due) return;
  if (draft.clock() < absl::Nanoseconds(live.asked_ns()) + kLooksAgain) return;
  if (is_due) live.set_ask_again_ns(0);
  AskIfIdle(draft, job);
  if (live.ask_revision() == 0) live.set_refused_revision(0);  // it may shrink, or nothing is there
}

// One look along the queue. True: a job was started, and the queue is another.
bool StartNext(Draft& draft) {
  bool is_started = false;
  InOrder(draft.state(), [&](const JobUid& uid) {
    const v1::Job& job = *draft.FindJob(uid);
    const v1::JobLive& live = draft.LiveJob(uid);
    if (absl::Nanoseconds(live.not_before_ns()) > draft.clock()) return true;
    if (const std::string over = OverQuota(draft.state(), job); !over.empty()) {
      SetReason(draft, uid, fmt::format("waiting: {}", over));
      return false;
    }
    if (StartInPlace(draft, job)) return is_started = true;
    if (IsUnfit(draft.state(), uid)) AskUnfit(draft, job);
    if (IsUnfit(draft.state(), uid)) return draft.options().mutants.unfit_blocks;
    Ask(draft, job);
    return true;
  });
  return is_started;
}

std::string Named(const Draft& draft, const std::set<JobUid>& uids) {
  std::vector<std::string> names;
  for (const JobUid& uid : uids) {
    if (std::ssize(names) == kMostNamed) {
      names.push_back(fmt::format("{} more", std::ssize(uids) - kMostNamed));
      break;
    }
    names.push_back(fmt::format("'{}'", draft.FindJob(uid)->metadata().name()));
  }
  return absl::StrJoin(names, ", ");
}

// The plan shows whose devices it takes.
void Preempt(Draft& draft, const v1::Job& job, const v1::Plan& plan) {
  const std::optional<Room> room = MakeRoom(draft, job);
  if (!room) return;
  std::set<JobUid> victims;
  for (const v1::RankPlacement& placed : plan.ranks()) {
    const auto node = draft.state().index.device_owner.find(placed.node());
    if (node == draft.state().index.device_owner.end()) continue;
    const auto owner = node->second.find(placed.device());
    if (owner != node->second.end() && room->victims.contains(owner->second)) {
      victims.insert(owner->second);
    }
  }
  if (victims.empty()) return;
  AskAgainWithin(draft, draft.LiveJob(job.uid()), kEndsWithin);
  // `job` may be looked up elsewhere once it is edited.
  const JobUid uid = job.uid();  // NOLINT(performance-unnecessary-copy-initialization)
  const std::string names = Named(draft, victims);
  for (const JobUid& victim : victims) {
    v1::Job& yielding = draft.EditJob(victim);
    YieldAttempt(draft, yielding,
                 fmt::format("preempted by job '{}', whose priority is {} and not {}",
                             draft.FindJob(uid)->metadata().name(), PriorityOf(*draft.FindJob(uid)),
                             PriorityOf(yielding)),
                 YieldGrace(yielding));
  }
  draft.AddEvent(uid, v1::SEVERITY_INFO, "PREEMPTS",
                 fmt::format("{} of lower priority save and give their devices up for it: {}",
                             std::ssize(victims), names),
                 {{"victims", absl::StrJoin(victims, ",")}});
  SetReason(draft, uid,
            fmt::format("waiting: {} of lower priority save and give way: {}", std::ssize(victims),
                        names));
}

// Nobody need wait for it.
void Pass(Draft& draft, const JobUid& uid, int64_t revision, const std::string& why) {
  draft.LiveJob(uid).set_refused_revision(-revision);
  SetReason(draft, uid,
            fmt::format("waiting: the present fleet cannot hold it, even idle: {}", why));
}

void OnWhatIf(Draft& draft, const v1::Job& job, const v1::CorePlanMade& made) {
  v1::JobLive& live = draft.LiveJob(job.uid());
  const int64_t revision = ClusterRevisionOf(made.revision());
  if (QuestionOf(made.revision()) == Question::kIdle) {
    if (!made.has_plan()) return Pass(draft, job.uid(), revision, made.error());
    if (live.refused_revision() < 0) live.set_refused_revision(0);
    return;
  }
  // Another cluster by now, or not its turn: it is asked again.
  if (draft.state().live.cluster_revision != revision || Next(draft) != &job) {
    return live.set_refused_revision(0);
  }
  if (!made.has_plan()) return AskIfIdle(draft, job);
  Preempt(draft, job, made.plan());
}

}  // namespace

bool IsUnfit(const State& state, const JobUid& uid) {
  const auto live = state.live.jobs.find(uid);
  return live != state.live.jobs.end() && live->second.refused_revision() < 0;
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
  if (QuestionOf(made.revision()) != Question::kNow) return OnWhatIf(draft, *found, made);
  // Not its turn any more, or another cluster: what was planned is not what there is.
  if (Next(draft) != found || draft.state().live.cluster_revision != made.revision()) {
    if (live.refused_revision() > 0) live.set_refused_revision(0);
    return;
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
