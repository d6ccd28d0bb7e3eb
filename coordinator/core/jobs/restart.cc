#include "coordinator/core/jobs/restart.h"

#include <algorithm>

#include "absl/status/status.h"
#include "coordinator/core/jobs/pause.h"
#include "coordinator/core/jobs/registry.h"
#include "coordinator/core/jobs/yield.h"
#include "coordinator/core/recovery/out_of_sight.h"
#include "coordinator/core/recovery/roll_back.h"
#include "fmt/core.h"

namespace mega::core {
namespace {

// What it trains again it saves in the folders of these steps. Null: none of them is pinned.
const v1::Manifest* PinnedAfter(const v1::Job& job, int64_t step) {
  const auto found = std::ranges::find_if(job.checkpoints(), [&](const v1::Manifest& manifest) {
    return manifest.pinned() && manifest.step() > step;
  });
  return found == job.checkpoints().end() ? nullptr : &*found;
}

}  // namespace

void RestartJob(Draft& draft, const v1::CoreRequest& request) {
  const v1::Job* found = FindUnfinished(draft, request);
  if (found == nullptr) return;
  const v1::RestartJobRequest& asked = request.restart_job();
  const std::string& name = found->metadata().name();
  if (asked.from_step() != 0 && asked.from_beginning()) {
    return draft.ReplyError(
        request.call(), absl::StatusCode::kInvalidArgument, "STEP_AMBIGUOUS",
        fmt::format("job '{}' is to restart from step {} and from its beginning; choose "
                    "one of them",
                    name, asked.from_step()));
  }
  const bool is_chosen = asked.from_step() != 0 || asked.from_beginning();
  if (asked.from_step() != 0 &&
      FindCheckpoint(draft, request.call(), *found, asked.from_step()) == nullptr) {
    return;
  }
  const int64_t step = is_chosen ? asked.from_step() : NewestCheckpoint(*found);
  if (found->pause_requested()) {
    return draft.ReplyError(request.call(), absl::StatusCode::kFailedPrecondition, "JOB_PAUSED",
                            fmt::format("job '{}' is paused; resume it, and it starts from step {}",
                                        name, NewestCheckpoint(*found)));
  }
  if (const v1::Manifest* pinned = is_chosen ? PinnedAfter(*found, step) : nullptr) {
    return draft.ReplyError(
        request.call(), absl::StatusCode::kFailedPrecondition, "CHECKPOINT_PINNED",
        fmt::format("job '{}' would train again what led to its pinned checkpoint of "
                    "step {}, and save it in the same folder; unpin it, or submit a job "
                    "with checkpoint.load",
                    name, pinned->step()));
  }
  v1::Job& job = draft.EditJob(found->uid());
  job.set_cycles_without_progress(0);
  ForgetBlindNodes(job);
  draft.LiveJob(job.uid()).set_not_before_ns(0);
  draft.AddEvent(job.uid(), v1::SEVERITY_INFO, "RESTART_REQUESTED",
                 fmt::format("a user asked to restart it from step {}", step),
                 {{"from_step", std::to_string(step)}});
  if (is_chosen) RollBack(draft, job, step);
  if (LiveAttempt(job) != nullptr) {
    YieldAttempt(draft, job, "restarted by a user", absl::ZeroDuration());
  }
  draft.ReplyJob(request.call(), request.uid());
}

}  // namespace mega::core
