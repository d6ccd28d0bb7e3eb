// Taking the devices of a healthy attempt away without losing its work: it is asked to save, and
// stopped when a checkpoint newer than the asking is committed, at the latest at a deadline.
// Nothing of it is a failure: no restart is counted, and no cycle without progress.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "coordinator/core/draft.h"

namespace mega::core {

// Has yielded or will: saved at most for `grace` (stopped at once when it is zero, or when there is
// no step to save), then stopped. The job needs a live attempt. Asked again, the earlier deadline
// stands; an attempt that is stopping already stays what it is.
void YieldAttempt(Draft& draft, v1::Job& job, std::string cause, absl::Duration grace);

// How long a checkpoint may take before this job gives its devices up: scheduling.preempt_grace, or
// a minute.
absl::Duration YieldGrace(const v1::Job& job);

// Saving because it yields; not told to stop yet.
bool IsSaving(const v1::Attempt& attempt);

// Tells every node of the live attempt to have its ranks save after the step they are in.
void AskToSave(Draft& draft, const v1::Job& job, const std::string& cause);

// The checkpoint of `step` has just been committed.
void YieldIfSaved(Draft& draft, v1::Job& job, int64_t step);
// At each tick, for a job whose live attempt is saving.
void CheckSaving(Draft& draft, const JobUid& uid);
// The attempt has ended; it yielded. Its job is paused, or stands in the queue again.
void AfterYield(Draft& draft, v1::Job& job);

}  // namespace mega::core
