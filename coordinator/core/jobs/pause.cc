#include "coordinator/core/jobs/pause.h"

#include <utility>

#include "absl/status/status.h"
#include "coordinator/core/jobs/phase.h"
#include "coordinator/core/jobs/yield.h"
#include "coordinator/core/recovery/out_of_sight.h"
#include "fmt/core.h"

namespace mega::core {

const v1::Job* FindAsked(Draft& draft, const v1::CoreRequest& request) {
  const v1::Job* found = draft.FindJob(request.uid());
  if (found == nullptr) {
    draft.ReplyError(request.call(), absl::StatusCode::kNotFound, "JOB_NOT_FOUND",
                     fmt::format("there is no job '{}'", request.uid()));
  }
  return found;
}

const v1::Job* FindUnfinished(Draft& draft, const v1::CoreRequest& request) {
  const v1::Job* found = FindAsked(draft, request);
  if (found == nullptr) return nullptr;
  if (IsTerminal(found->phase()) || found->cancel_requested()) {
    draft.ReplyError(
        request.call(), absl::StatusCode::kFailedPrecondition, "JOB_FINISHED",
        fmt::format("job '{}' {} ({}); submit it again to run it again", found->metadata().name(),
                    IsTerminal(found->phase()) ? "has ended" : "is being cancelled",
                    PhaseName(found->phase())));
    return nullptr;
  }
  return found;
}

void PauseJob(Draft& draft, const v1::CoreRequest& request) {
  const v1::Job* found = FindUnfinished(draft, request);
  if (found == nullptr) return;
  if (!found->pause_requested()) {
    v1::Job& job = draft.EditJob(found->uid());
    job.set_pause_requested(true);
    draft.AddEvent(job.uid(), v1::SEVERITY_INFO, "PAUSE_REQUESTED", "a user asked to pause it");
    if (LiveAttempt(job) == nullptr) {
      EnterPause(draft, job);
    } else {
      YieldAttempt(draft, job, "paused by a user", YieldGrace(job));
    }
  }
  draft.ReplyJob(request.call(), request.uid());
}

void EnterPause(Draft& draft, v1::Job& job, std::string reason) {
  job.set_phase(v1::JOB_PHASE_PAUSED);
  job.set_reason(std::move(reason));
  draft.LiveJob(job.uid()).set_ask_revision(0);
  draft.AddEvent(job.uid(), v1::SEVERITY_INFO, "PAUSED", "it holds no device now");
}

void ResumeJob(Draft& draft, const v1::CoreRequest& request) {
  const v1::Job* found = FindUnfinished(draft, request);
  if (found == nullptr) return;
  if (found->pause_requested()) {
    v1::Job& job = draft.EditJob(found->uid());
    job.set_pause_requested(false);
    job.set_cycles_without_progress(0);
    ForgetBlindNodes(job);
    draft.AddEvent(job.uid(), v1::SEVERITY_INFO, "RESUMED", "a user asked it to go on");
    // An attempt that still gives its devices up does so, and the job goes on after it.
    if (job.phase() == v1::JOB_PHASE_PAUSED) {
      job.set_phase(job.attempts().empty() ? v1::JOB_PHASE_QUEUED : v1::JOB_PHASE_RECOVERING);
      job.set_reason("waiting for its turn in the queue");
    }
  }
  draft.ReplyJob(request.call(), request.uid());
}

}  // namespace mega::core
