#include "coordinator/core/jobs/yield.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "coordinator/core/jobs/attempt.h"
#include "coordinator/core/jobs/pause.h"
#include "fmt/core.h"

namespace mega::core {
namespace {

constexpr absl::Duration kGrace = absl::Seconds(60);

// The deadline on the core's own clock. A new process has forgotten it and takes what is written;
// wall time that stands wrong then makes it at most the whole grace again.
absl::Duration SaveUntil(Draft& draft, const v1::Job& job) {
  v1::JobLive& live = draft.LiveJob(job.uid());
  if (live.save_until_ns() == 0) {
    const v1::Attempt& attempt = NewestAttempt(job);
    const absl::Time deadline = FromProto(attempt.save_deadline());
    const absl::Duration grace = deadline - FromProto(attempt.stop_time());
    const absl::Duration left = std::clamp(deadline - FromProto(draft.wall()), absl::ZeroDuration(),
                                           std::max(grace, absl::Seconds(0)));
    live.set_save_until_ns(absl::ToInt64Nanoseconds(draft.clock() + left));
  }
  return absl::Nanoseconds(live.save_until_ns());
}

}  // namespace

absl::Duration YieldGrace(const v1::Job& job) {
  const v1::Scheduling& rules = job.resolved_spec().scheduling();
  return rules.has_preempt_grace() ? FromProto(rules.preempt_grace()) : kGrace;
}

bool IsSaving(const v1::Attempt& attempt) {
  return attempt.yields() && (attempt.state() == v1::ATTEMPT_STATE_STARTING ||
                              attempt.state() == v1::ATTEMPT_STATE_RUNNING);
}

void AskToSave(Draft& draft, const v1::Job& job, const std::string& cause) {
  const v1::Attempt& attempt = NewestAttempt(job);
  v1::Command command;
  v1::SaveCheckpoint& save = *command.mutable_save_checkpoint();
  save.set_job_uid(job.uid());
  save.set_attempt(attempt.number());
  save.set_epoch(attempt.epoch());
  save.set_cause(cause);
  for (const NodeId& node : NodesOf(attempt)) draft.AddCommand(node, command);
}

void YieldAttempt(Draft& draft, v1::Job& job, std::string cause, absl::Duration grace) {
  MEGA_CHECK(LiveAttempt(job) != nullptr);
  v1::Attempt& attempt = NewestAttempt(job);
  if (attempt.state() == v1::ATTEMPT_STATE_STOPPING) return;
  // Before its first step there is nothing that its checkpoint does not hold.
  if (attempt.state() != v1::ATTEMPT_STATE_RUNNING) grace = absl::ZeroDuration();
  const absl::Duration until = draft.clock() + grace;
  const bool is_repeated = attempt.yields();
  if (is_repeated && SaveUntil(draft, job) <= until) return;

  v1::JobLive& live = draft.LiveJob(job.uid());
  live.set_save_until_ns(absl::ToInt64Nanoseconds(until));
  attempt.set_yields(true);
  attempt.set_cause(cause);
  if (!is_repeated) *attempt.mutable_stop_time() = draft.wall();
  *attempt.mutable_save_deadline() = ToProto(FromProto(draft.wall()) + grace);
  if (grace <= absl::ZeroDuration()) {
    return StopAttempt(draft, job, draft.options().cancel_grace, std::move(cause));
  }
  job.set_reason(fmt::format("saving before it gives its devices up: {}", cause));
  if (is_repeated) return;
  live.set_yield_step(attempt.last_step());
  draft.AddEvent(job.uid(), v1::SEVERITY_INFO, "YIELDING",
                 fmt::format("attempt {} saves, at most for {}, and then stops: {}",
                             attempt.number(), absl::FormatDuration(grace), cause),
                 {{"step", std::to_string(attempt.last_step())}});
  AskToSave(draft, job, cause);
}

void YieldIfSaved(Draft& draft, v1::Job& job, int64_t step) {
  const v1::Attempt* attempt = LiveAttempt(job);
  if (attempt == nullptr || !IsSaving(*attempt)) return;
  if (step <= draft.LiveJob(job.uid()).yield_step()) return;  // was under way before the asking
  StopAttempt(draft, job, draft.options().cancel_grace, attempt->cause());
}

void CheckSaving(Draft& draft, const JobUid& uid) {
  if (SaveUntil(draft, *draft.FindJob(uid)) > draft.clock()) return;
  v1::Job& job = draft.EditJob(uid);
  const v1::Attempt& attempt = NewestAttempt(job);
  draft.AddEvent(uid, v1::SEVERITY_WARNING, "SAVE_OVERDUE",
                 fmt::format("attempt {} has not saved in its grace; it is stopped, and goes on "
                             "from its last checkpoint later",
                             attempt.number()));
  StopAttempt(draft, job, draft.options().cancel_grace, attempt.cause());
}

void AfterYield(Draft& draft, v1::Job& job) {
  const v1::Attempt& attempt = NewestAttempt(job);
  const int64_t from = NewestCheckpoint(job);
  draft.AddEvent(
      job.uid(), v1::SEVERITY_INFO, "YIELDED",
      fmt::format("attempt {} gave its devices up after step {}: {}; it goes on from step {}",
                  attempt.number(), attempt.last_step(), attempt.cause(), from),
      {{"from_step", std::to_string(from)},
       {"lost_steps", std::to_string(std::max<int64_t>(0, attempt.last_step() - from))}});
  if (job.pause_requested()) return EnterPause(draft, job);
  job.set_phase(v1::JOB_PHASE_RECOVERING);
  job.set_reason(fmt::format("waiting for devices: {}", attempt.cause()));
}

}  // namespace mega::core
