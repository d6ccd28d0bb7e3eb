#include "coordinator/core/jobs/restart.h"

#include "absl/status/status.h"
#include "coordinator/core/jobs/pause.h"
#include "coordinator/core/jobs/yield.h"
#include "fmt/core.h"

namespace mega::core {

void RestartJob(Draft& draft, const v1::CoreRequest& request) {
  const v1::Job* found = FindUnfinished(draft, request);
  if (found == nullptr) return;
  const v1::RestartJobRequest& asked = request.restart_job();
  const auto refuse = [&](absl::StatusCode code, std::string_view reason, std::string message) {
    draft.ReplyError(request.call(), static_cast<int>(code), reason, std::move(message));
  };
  const int64_t newest = NewestCheckpoint(*found);
  if ((asked.from_step() != 0 && asked.from_step() != newest) ||
      (asked.from_beginning() && newest != 0)) {
    return refuse(absl::StatusCode::kUnimplemented, "NOT_IMPLEMENTED",
                  fmt::format("job '{}' can only be restarted from its newest checkpoint, which is "
                              "of step {}; submit a job with checkpoint.load for another one",
                              found->metadata().name(), newest));
  }
  if (found->pause_requested()) {
    return refuse(absl::StatusCode::kFailedPrecondition, "JOB_PAUSED",
                  fmt::format("job '{}' is paused; resume it, and it starts from step {}",
                              found->metadata().name(), newest));
  }
  v1::Job& job = draft.EditJob(found->uid());
  job.set_cycles_without_progress(0);
  draft.LiveJob(job.uid()).set_not_before_ns(0);
  draft.AddEvent(job.uid(), v1::SEVERITY_INFO, "RESTART_REQUESTED",
                 fmt::format("a user asked to restart it from step {}", newest),
                 {{"from_step", std::to_string(newest)}});
  if (LiveAttempt(job) != nullptr) {
    YieldAttempt(draft, job, "restarted by a user", absl::ZeroDuration());
  }
  draft.ReplyJob(request.call(), request.uid());
}

}  // namespace mega::core
