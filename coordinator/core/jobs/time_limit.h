// scheduling.time_limit: how long a job may hold devices, over all its attempts; waiting does not
// count. When it is over the attempt saves and yields, and its job ends.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "coordinator/core/draft.h"

namespace mega::core {

// Attempts that the record no longer has do not count.
absl::Duration TimeUsed(const v1::Job& job, absl::Time now);
bool IsTimeUp(const v1::Job& job, absl::Time now);
// At each tick, for a job that has a limit and a live attempt.
void CheckTimeLimit(Draft& draft, const JobUid& uid);

}  // namespace mega::core
