#include "coordinator/core/jobs/cancel.h"

#include "absl/status/status.h"
#include "coordinator/core/jobs/attempt.h"
#include "coordinator/core/jobs/phase.h"
#include "fmt/core.h"

namespace mega::core {

void Cancel(Draft& draft, const v1::CoreCancel& cancel) {
  const v1::Job* found = draft.FindJob(cancel.uid());
  if (found == nullptr) {
    return draft.ReplyError(cancel.call(), absl::StatusCode::kNotFound, "JOB_NOT_FOUND",
                            fmt::format("there is no job '{}'", cancel.uid()));
  }
  const bool is_repeated = found->cancel_requested();
  if (!is_repeated && IsTerminal(found->phase())) {
    return draft.ReplyError(cancel.call(), absl::StatusCode::kFailedPrecondition, "JOB_FINISHED",
                            fmt::format("job '{}' has already ended ({}); there is nothing to "
                                        "cancel",
                                        found->metadata().name(), PhaseName(found->phase())));
  }
  if (!is_repeated) {
    v1::Job& job = draft.EditJob(cancel.uid());
    job.set_cancel_requested(true);
    draft.AddEvent(job.uid(), v1::SEVERITY_INFO, "CANCEL_REQUESTED", "a user asked to stop it");
    if (LiveAttempt(job) == nullptr) {
      EndJob(draft, job, v1::JOB_PHASE_CANCELLED, "cancelled by a user before it had any ranks");
    } else {
      job.set_reason("cancelling: its ranks are asked to stop");
      StopAttempt(draft, job, draft.options().cancel_grace, "cancelled by a user");
    }
  }
  draft.ReplyJob(cancel.call(), cancel.uid());
}

}  // namespace mega::core
