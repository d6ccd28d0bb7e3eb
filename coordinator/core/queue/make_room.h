// Devices for a job of higher priority that does not fit: whether it helps that others yield, and
// that they do.
#pragma once

#include <optional>
#include <set>

#include "absl/time/time.h"
#include "coordinator/core/draft.h"

namespace mega::core {

// Who waits for jobs that give their devices up looks this often whether they ever will.
inline constexpr absl::Duration kEndsWithin = absl::Minutes(1);

struct Room {
  std::set<JobUid> victims;  // would have to yield; empty: it is enough to wait for those that end
  std::set<JobUid> ended;    // with those that end anyway
};
// Who would have to give way for the job, by counts; nullopt: that would not help.
std::optional<Room> MakeRoom(const Draft& draft, const v1::Job& job);
// The planner says that it helps; the plan shows whose devices it takes.
void Preempt(Draft& draft, const v1::Job& job, const v1::Plan& plan);

}  // namespace mega::core
