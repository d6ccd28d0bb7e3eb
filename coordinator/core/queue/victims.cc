#include "coordinator/core/queue/victims.h"

#include <algorithm>
#include <tuple>

#include "base/clock.h"
#include "coordinator/core/jobs/attempt.h"
#include "coordinator/core/jobs/yield.h"

namespace mega::core {
namespace {

// Beyond its grace; ranks that have not ended by then may never.
constexpr absl::Duration kStopsWithin = absl::Minutes(1);

class Chooser {
 public:
  Chooser(const std::map<NodeId, int64_t>& free, const Demand& demand)
      : free_(free), demand_(demand) {}

  void Give(const Holder& holder) { Count(holder, 1); }
  void TakeBack(const Holder& holder) { Count(holder, -1); }
  bool IsEnough() const {
    std::vector<int64_t> counts;
    for (const auto& [node, count] : free_) counts.push_back(count);
    return HasRoom(std::move(counts), demand_);
  }

 private:
  void Count(const Holder& holder, int64_t sign) {
    for (const auto& [node, count] : holder.devices) {
      const auto known = free_.find(node);
      if (known != free_.end()) known->second += sign * count;
    }
  }

  std::map<NodeId, int64_t> free_;
  const Demand& demand_;
};

}  // namespace

std::optional<std::vector<JobUid>> ChooseVictims(const std::map<NodeId, int64_t>& free,
                                                 const std::vector<Holder>& holders,
                                                 int64_t priority, const Demand& demand,
                                                 bool or_equal) {
  Chooser chooser(free, demand);
  std::vector<const Holder*> candidates;
  for (const Holder& holder : holders) {
    if (holder.is_ending) {
      chooser.Give(holder);
    } else if (holder.is_preemptible &&
               (holder.priority < priority || (or_equal && holder.priority == priority))) {
      candidates.push_back(&holder);
    }
  }
  if (chooser.IsEnough()) return std::vector<JobUid>();
  std::ranges::sort(candidates, [](const Holder* a, const Holder* b) {
    return std::tuple(a->priority, b->create_time, b->uid) <
           std::tuple(b->priority, a->create_time, a->uid);
  });
  std::vector<const Holder*> chosen;
  for (const Holder* candidate : candidates) {
    if (chooser.IsEnough()) break;
    chooser.Give(*candidate);
    chosen.push_back(candidate);
  }
  if (!chooser.IsEnough()) return std::nullopt;
  // One is better than several, if it stands no higher than the highest of them.
  if (chosen.size() > 1) {
    for (const Holder* holder : chosen) chooser.TakeBack(*holder);
    for (const Holder* candidate : candidates) {
      if (candidate->priority > chosen.back()->priority) break;
      chooser.Give(*candidate);
      if (chooser.IsEnough()) return std::vector<JobUid>{candidate->uid};
      chooser.TakeBack(*candidate);
    }
    for (const Holder* holder : chosen) chooser.Give(*holder);
  }
  // Who was added early may not be needed any more; the highest are spared first.
  std::vector<JobUid> victims;
  for (auto holder = chosen.rbegin(); holder != chosen.rend(); ++holder) {
    chooser.TakeBack(**holder);
    if (chooser.IsEnough()) continue;
    chooser.Give(**holder);
    victims.push_back((*holder)->uid);
  }
  std::ranges::reverse(victims);
  return victims;
}

Holder HolderOf(const v1::Job& job, absl::Time now) {
  Holder holder{.uid = job.uid(),
                .priority = PriorityOf(job),
                .create_time = FromProto(job.create_time()),
                .is_preemptible = IsPreemptible(job),
                .devices = {}};
  const v1::Attempt& attempt = NewestAttempt(job);
  for (const v1::RankState& rank : attempt.ranks()) ++holder.devices[rank.node()];
  if (attempt.yields() || attempt.state() == v1::ATTEMPT_STATE_STOPPING) {
    // One that will not end must not hold up the queue for ever.
    const bool is_stuck = attempt.has_stop_time() &&
                          now > FromProto(attempt.stop_time()) + YieldGrace(job) + kStopsWithin;
    holder.is_ending = !is_stuck;
    holder.is_preemptible = false;
  }
  return holder;
}

int64_t PriorityOf(const v1::Job& job) { return job.resolved_spec().scheduling().priority(); }

bool IsPreemptible(const v1::Job& job) {
  const v1::Scheduling& scheduling = job.resolved_spec().scheduling();
  return !scheduling.has_preemptible() || scheduling.preemptible();
}

}  // namespace mega::core
