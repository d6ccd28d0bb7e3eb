#include "coordinator/core/queue/unfit.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "coordinator/core/jobs/phase.h"
#include "coordinator/core/queue/demand.h"
#include "coordinator/core/queue/placement.h"
#include "coordinator/core/queue/question.h"
#include "coordinator/core/queue/queue.h"
#include "coordinator/core/recovery/records.h"
#include "coordinator/core/recovery/resize.h"
#include "fmt/core.h"

namespace mega::core {
namespace {

// A job that recovers keeps its place so long, though the fleet has become too small for it.
constexpr absl::Duration kKeepsPlace = absl::Minutes(5);

// How much longer others wait for the job, whether or not the fleet could hold it.
absl::Duration KeepsPlaceFor(const Draft& draft, const v1::Job& job) {
  const absl::Time now = FromProto(draft.wall());
  if (MayShrink(job, now)) return absl::InfiniteDuration();
  if (job.phase() != v1::JOB_PHASE_RECOVERING) return absl::ZeroDuration();
  const absl::Time until = FromProto(NewestAttempt(job).end_time()) + kKeepsPlace;
  return std::max(until - now, absl::ZeroDuration());
}

// Nobody need wait for it.
void Pass(Draft& draft, const JobUid& uid, int64_t revision, const std::string& why) {
  SetUnfitAt(draft.LiveJob(uid), revision);
  const absl::Time now = FromProto(draft.wall());
  SetReason(draft, uid,
            fmt::format("waiting: the present fleet cannot hold it, even idle: {}{}", why,
                        LeftOutText(*draft.FindJob(uid), now)));
}

// In the planner's words. No number of the fleet is in it: the reason of thousands of jobs would
// change with each node.
std::string Describe(const Demand& demand) {
  std::string text = fmt::format("the job needs {} {}", demand.devices,
                                 demand.devices == 1 ? "device" : "devices");
  if (demand.nodes != Demand::kAny) {
    text += fmt::format(" on at most {} {}", demand.nodes, demand.nodes == 1 ? "node" : "nodes");
  }
  if (demand.per_node != Demand::kAny) {
    text += fmt::format(", at most {} on each", demand.per_node);
  }
  return text;
}

}  // namespace

void AskIfIdle(Draft& draft, const v1::Job& job) {
  const absl::Duration keeps = KeepsPlaceFor(draft, job);
  if (keeps == absl::InfiniteDuration()) return;
  if (keeps > absl::ZeroDuration()) {
    return AskAgainWithin(draft, draft.LiveJob(job.uid()), keeps);
  }
  const std::vector<v1::Node> nodes =
      Without(FleetNodes(draft.state()), LeftOut(job, FromProto(draft.wall()), /*by_rule=*/true));
  if (HasDevices(nodes)) PutQuestion(draft, job, Question::kIdle, nodes);
}

void OnIdlePlan(Draft& draft, const v1::Job& job, const v1::CorePlanMade& made) {
  if (made.has_plan()) return ForgetUnfit(draft.LiveJob(job.uid()));
  Pass(draft, job.uid(), ClusterRevisionOf(made.revision()), made.error());
}

const std::vector<std::pair<int64_t, NodeId>>& UnfitJobs::Fleet() {
  if (!fleet_) {
    fleet_.emplace();
    for (const auto& [id, node] : draft_.state().durable.nodes) {
      if (IsOfFleet(node) && node.devices_size() > 0) fleet_->emplace_back(node.devices_size(), id);
    }
    std::ranges::sort(*fleet_, std::greater<>());
  }
  return *fleet_;
}

std::vector<int64_t> UnfitJobs::SizesFor(const v1::Job& job) {
  const std::set<NodeId> left_out = LeftOut(job, FromProto(draft_.wall()), /*by_rule=*/true);
  std::vector<int64_t> sizes;
  sizes.reserve(Fleet().size());
  for (const auto& [size, id] : Fleet()) {
    if (left_out.empty() || !left_out.contains(id)) sizes.push_back(size);
  }
  return sizes;
}

// Nothing is too large for a fleet that is not there: who is first waits for it. Where all of it is
// left out for this job, others need not.
bool UnfitJobs::MayBePassed(const v1::Job& job) {
  return KeepsPlaceFor(draft_, job) <= absl::ZeroDuration() && !Fleet().empty();
}

bool UnfitJobs::PassIfTooLarge(const v1::Job& job) {
  if (!MayBePassed(job)) return false;
  std::vector<int64_t> sizes = SizesFor(job);
  const Demand demand = DemandOf(job.resolved_spec(), WantedNodes(job), sizes);
  if (HasRoom(std::move(sizes), demand)) return false;
  v1::JobLive& live = draft_.LiveJob(job.uid());
  live.set_ask_revision(0);  // whatever the answer would be
  live.set_asked_ns(absl::ToInt64Nanoseconds(draft_.clock()));
  live.clear_ask_again_ns();
  const absl::Time now = FromProto(draft_.wall());
  if (const absl::Time until = LeftOutUntil(job, now); until != absl::InfiniteFuture()) {
    AskAgainWithin(draft_, live, until - now);
  }
  Pass(draft_, job.uid(), draft_.state().live.cluster_revision, Describe(demand));
  return true;
}

void UnfitJobs::LookAgain(const v1::Job& job) {
  v1::JobLive& live = draft_.LiveJob(job.uid());
  if (IsAsked(draft_, live)) {
    is_asked_ |= IsAskedIdle(live);
    return;
  }
  const bool is_known = UnfitAt(live) == draft_.state().live.cluster_revision;
  if (is_known && !IsDue(draft_, live)) return;
  if (draft_.clock() < absl::Nanoseconds(live.asked_ns()) + kLooksAgain) return;
  again_.emplace_back(live.asked_ns(), job.uid());
}

// Who has waited longest for a look gets one; of these, who is first in the queue gets the
// question.
std::vector<JobUid> UnfitJobs::TakeTurns() {
  std::vector<size_t> turns(again_.size());
  std::iota(turns.begin(), turns.end(), size_t{0});
  const size_t looks = std::min(again_.size(), kLooksAtOnce);
  std::ranges::partial_sort(turns, turns.begin() + static_cast<std::ptrdiff_t>(looks), {},
                            [&](size_t i) { return std::pair(again_[i].first, i); });
  turns.resize(looks);
  std::ranges::sort(turns);
  std::vector<JobUid> uids;
  for (const size_t i : turns) uids.push_back(std::move(again_[i].second));
  again_.clear();
  return uids;
}

bool UnfitJobs::Settle() {
  bool is_any_back = false;
  for (const JobUid& uid : TakeTurns()) {
    const v1::Job& job = *draft_.FindJob(uid);
    v1::JobLive& live = draft_.LiveJob(uid);
    if (PassIfTooLarge(job)) continue;
    const bool may_be_passed = MayBePassed(job);
    if (may_be_passed && is_asked_) {  // its turn comes
      live.set_asked_ns(absl::ToInt64Nanoseconds(draft_.clock()));
      continue;
    }
    if (IsDue(draft_, live)) live.clear_ask_again_ns();
    if (may_be_passed) AskIfIdle(draft_, job);
    is_asked_ |= IsAskedIdle(live);
    if (live.ask_revision() != 0) continue;
    ForgetUnfit(live);
    is_any_back = true;
  }
  return is_any_back;
}

}  // namespace mega::core
