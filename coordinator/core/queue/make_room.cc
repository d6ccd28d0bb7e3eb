#include "coordinator/core/queue/make_room.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "coordinator/core/jobs/phase.h"
#include "coordinator/core/jobs/yield.h"
#include "coordinator/core/queue/demand.h"
#include "coordinator/core/queue/placement.h"
#include "coordinator/core/queue/question.h"
#include "coordinator/core/queue/victims.h"
#include "coordinator/core/recovery/records.h"
#include "fmt/core.h"

namespace mega::core {
namespace {

constexpr int kMostNamed = 3;  // jobs in one sentence

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

}  // namespace

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

}  // namespace mega::core
