#include "coordinator/core/jobs/goodput.h"

#include <algorithm>
#include <string>

#include "base/clock.h"
#include "coordinator/core/jobs/yield.h"
#include "coordinator/core/state.h"

namespace mega::core {
namespace {

constexpr std::string_view kQueued = "queued", kRecovering = "recovering", kPaused = "paused",
                           kStarting = "starting", kRestoring = "restoring", kTraining = "training",
                           kRework = "rework", kSaving = "saving", kStopping = "stopping";

// The newest step that an earlier attempt is known to have made. Attempts too old to be kept have
// made fewer, unless each of the hundred that are kept made no headway.
int64_t StepsMadeBefore(const v1::Job& job) {
  int64_t made = 0;
  for (int i = 0; i + 1 < job.attempts_size(); ++i) {
    made = std::max(made, job.attempts(i).last_step());
  }
  return made;
}

int64_t DevicesHeld(const v1::Job& job) {
  const v1::Attempt* attempt = LiveAttempt(job);
  return IsTerminal(job.phase()) || attempt == nullptr ? 0 : attempt->ranks_size();
}

v1::GoodputCause& Entry(v1::Goodput& ledger, const std::string& cause) {
  for (v1::GoodputCause& entry : *ledger.mutable_causes()) {
    if (entry.cause() == cause) return entry;
  }
  v1::GoodputCause& entry = *ledger.add_causes();
  entry.set_cause(cause);
  return entry;
}

// Closes the open span at `until`, or where it began if that is later.
void Close(v1::Goodput& ledger, absl::Time until) {
  const absl::Duration span = until - FromProto(ledger.open_time());
  if (span <= absl::ZeroDuration()) return;
  v1::GoodputCause& entry = Entry(ledger, ledger.open_cause());
  const double seconds = absl::ToDoubleSeconds(span);
  entry.set_seconds(entry.seconds() + seconds);
  entry.set_device_seconds(entry.device_seconds() +
                           seconds * static_cast<double>(ledger.open_devices()));
  *ledger.mutable_open_time() = ToProto(until);
}

}  // namespace

std::string_view CauseOfTime(const v1::Job& job) {
  if (IsTerminal(job.phase())) return "";
  const v1::Attempt* attempt = LiveAttempt(job);
  if (attempt == nullptr) {
    if (job.phase() == v1::JOB_PHASE_PAUSED) return kPaused;
    const bool has_failed = !job.attempts().empty() && !NewestAttempt(job).yields();
    return has_failed ? kRecovering : kQueued;
  }
  if (attempt->state() == v1::ATTEMPT_STATE_STOPPING) return kStopping;
  if (IsSaving(*attempt)) return kSaving;
  if (attempt->state() == v1::ATTEMPT_STATE_RUNNING) {
    return attempt->last_step() < StepsMadeBefore(job) ? kRework : kTraining;
  }
  const bool is_connected = std::ranges::all_of(attempt->ranks(), &v1::RankState::ready);
  return is_connected && attempt->has_load() ? kRestoring : kStarting;
}

void ChargeTime(v1::Job& job, absl::Time now) {
  const std::string_view cause = CauseOfTime(job);
  const int64_t devices = DevicesHeld(job);
  v1::Goodput& ledger = *job.mutable_goodput();
  if (ledger.has_open_time()) {
    if (ledger.open_cause() == cause && ledger.open_devices() == devices) return;
    Close(ledger, now);
  } else if (!cause.empty()) {
    *ledger.mutable_open_time() = ToProto(now);
  }
  ledger.set_open_cause(cause.data(), cause.size());
  ledger.set_open_devices(devices);
  if (cause.empty()) ledger.clear_open_time();
}

void ChargeStandstill(v1::Job& job, absl::Time now, absl::Duration still) {
  v1::Goodput& ledger = *job.mutable_goodput();
  if (ledger.open_cause() != kTraining && ledger.open_cause() != kRework) return;
  Close(ledger, now - std::max(still, absl::ZeroDuration()));
  ledger.set_open_cause(kRecovering.data(), kRecovering.size());
}

bool EndsRework(const v1::Job& job, int64_t step) {
  return job.goodput().open_cause() == kRework && step >= StepsMadeBefore(job);
}

}  // namespace mega::core
