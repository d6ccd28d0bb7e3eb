#include "coordinator/core/recovery/roll_back.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "base/clock.h"
#include "coordinator/core/recovery/records.h"
#include "fmt/core.h"

namespace mega::core {

void RollBack(Draft& draft, v1::Job& job, int64_t step) {
  if (job.attempts().empty()) return;  // it stands at its beginning
  const int64_t newest = NewestCheckpoint(job);
  auto& known = *job.mutable_checkpoints();
  const auto later = std::ranges::find_if(
      known, [&](const v1::Manifest& manifest) { return manifest.step() > step; });
  const int64_t dropped = std::distance(later, known.end());
  const v1::Attempt& attempt = NewestAttempt(job);

  v1::RecoveryRecord record;
  *record.mutable_time() = draft.wall();
  record.set_rung(std::string(kRollBack));
  record.set_cause(fmt::format("a user asked to go on from step {}", step));
  record.set_decided_by("a user");
  record.set_attempt(attempt.number());
  record.set_from_step(step);
  record.set_lost_steps(std::max<int64_t>(0, attempt.last_step() - step));
  AddRecord(job, std::move(record), FromProto(draft.wall()));

  known.erase(later, known.end());
  draft.ForgetParts(job.uid());
  // Steps that it makes again are progress.
  job.set_progress_step(std::min(job.progress_step(), step));
  if (dropped == 0) return;
  draft.AddEvent(
      job.uid(), v1::SEVERITY_WARNING, "ROLLED_BACK",
      fmt::format("its {} checkpoints after step {}, up to step {}, are not used any more; their "
                  "folders stay until it saves these steps again",
                  dropped, step, newest),
      {{"from_step", std::to_string(step)},
       {"newest_step", std::to_string(newest)},
       {"checkpoints", std::to_string(dropped)}});
}

bool IsRolledBack(const v1::Job& job, const v1::Attempt& attempt) {
  return std::ranges::any_of(job.recoveries(), [&](const v1::RecoveryRecord& record) {
    return record.rung() == kRollBack && record.attempt() == attempt.number();
  });
}

}  // namespace mega::core
