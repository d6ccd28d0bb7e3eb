// Jobs that the present fleet cannot hold, even idle: others pass them. Counts decide as far as
// they can, the planner decides the rest (memory, libraries), and a look along the queue gives it
// one such question at most: each carries the whole fleet, and a queue may hold thousands of these
// jobs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "coordinator/core/draft.h"

namespace mega::core {

// There is no room for the job now: asks whether there ever could be, unless others wait for it all
// the same. One that may shrink is not passed before it does; one that recovers not at once: a node
// that was lost may come back, or another for it.
void AskIfIdle(Draft& draft, const v1::Job& job);
// The answer.
void OnIdlePlan(Draft& draft, const v1::Job& job, const v1::CorePlanMade& made);

// So many are looked at again in one step.
inline constexpr size_t kLooksAtOnce = 100;

// Those of one look along the queue.
class UnfitJobs {
 public:
  explicit UnfitJobs(Draft& draft) : draft_(draft) {}

  // Passes the job at once if the number of devices alone says so. True: it did.
  bool PassIfTooLarge(const v1::Job& job);
  // The job is unfit, and meets another fleet than it knew.
  void LookAgain(const v1::Job& job);
  // What has become of them. True: some stand in their place again.
  bool Settle();

 private:
  std::vector<JobUid> TakeTurns();
  bool MayBePassed(const v1::Job& job);
  // Devices and name of each node, as if nothing ran; the largest first.
  const std::vector<std::pair<int64_t, NodeId>>& Fleet();
  // Devices of those that the job may be placed on, in the same order.
  std::vector<int64_t> SizesFor(const v1::Job& job);

  Draft& draft_;
  std::optional<std::vector<std::pair<int64_t, NodeId>>> fleet_;  // once it was asked for
  bool is_asked_ = false;                                         // a question is outstanding
  std::vector<std::pair<int64_t, JobUid>> again_;  // when it was looked at last, job; in
                                                   // the order of the queue
};

}  // namespace mega::core
