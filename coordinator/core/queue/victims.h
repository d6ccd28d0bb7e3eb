// Who gives way to a job of higher priority that does not fit.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "coordinator/core/queue/demand.h"
#include "coordinator/core/state.h"

namespace mega::core {

// A job that holds devices.
struct Holder {
  JobUid uid;
  int64_t priority = 0;
  absl::Time create_time;
  bool is_preemptible = true;
  bool is_ending = false;  // gives its devices up soon, whatever is decided here
  std::map<NodeId, int64_t> devices;
};

// Those whose devices, with the free ones and those of jobs that end, hold `demand`: of lower
// priority and preemptible; the lowest priority first, the youngest of these first, and none that
// is not needed. Empty: it is enough to wait for those that end. nullopt: it would not help.
// `free`: of nodes that the job may be placed on; what is held elsewhere does not count.
// `or_equal` is a deliberate bug: victims of the same priority.
std::optional<std::vector<JobUid>> ChooseVictims(const std::map<NodeId, int64_t>& free,
                                                 const std::vector<Holder>& holders,
                                                 int64_t priority, const Demand& demand,
                                                 bool or_equal = false);

// A job with a live attempt.
Holder HolderOf(const v1::Job& job, absl::Time now);

int64_t PriorityOf(const v1::Job& job);
bool IsPreemptible(const v1::Job& job);

}  // namespace mega::core
