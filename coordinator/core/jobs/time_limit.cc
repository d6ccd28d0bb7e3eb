#include "coordinator/core/jobs/time_limit.h"

#include <algorithm>

#include "base/clock.h"
#include "coordinator/core/jobs/yield.h"
#include "fmt/core.h"

namespace mega::core {

absl::Duration TimeUsed(const v1::Job& job, absl::Time now) {
  absl::Duration used;
  for (const v1::Attempt& attempt : job.attempts()) {
    const absl::Time end = attempt.has_end_time() ? FromProto(attempt.end_time()) : now;
    used += std::max(end - FromProto(attempt.create_time()), absl::ZeroDuration());
  }
  return used;
}

bool IsTimeUp(const v1::Job& job, absl::Time now) {
  const v1::Scheduling& scheduling = job.resolved_spec().scheduling();
  return scheduling.has_time_limit() && TimeUsed(job, now) >= FromProto(scheduling.time_limit());
}

void CheckTimeLimit(Draft& draft, const JobUid& uid) {
  const v1::Job& job = *draft.FindJob(uid);
  if (NewestAttempt(job).yields() || !IsTimeUp(job, FromProto(draft.wall()))) return;
  v1::Job& over = draft.EditJob(uid);
  const absl::Duration limit = FromProto(over.resolved_spec().scheduling().time_limit());
  YieldAttempt(
      draft, over,
      fmt::format("its time is over (scheduling.time_limit is {})", absl::FormatDuration(limit)),
      YieldGrace(over));
}

}  // namespace mega::core
