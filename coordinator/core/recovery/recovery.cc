#include "coordinator/core/recovery/recovery.h"

#include <algorithm>
#include <string>

#include "coordinator/core/jobs/phase.h"
#include "coordinator/core/jobs/yield.h"
#include "fmt/core.h"

namespace mega::core {
namespace {

bool EndedWell(const v1::RankState& rank) { return rank.exited() && IsClean(rank.exit()); }

// A rank whose exit says that another attempt would end the same way; null if none does.
const v1::RankState* FindPermanent(const v1::Attempt& attempt) {
  for (const v1::RankState& rank : attempt.ranks()) {
    const bool is_own_verdict = rank.exited() && !rank.exit().killed_by_worker();
    const int code = rank.exit().code();
    if (is_own_verdict && (code == kExitBadInput || code == kExitDoNotRequeue)) return &rank;
  }
  return nullptr;
}

// Counts attempts in a row that brought no step beyond all earlier ones.
void CountProgress(v1::Job& job, const v1::Attempt& attempt) {
  if (attempt.last_step() > job.progress_step()) {
    job.set_progress_step(attempt.last_step());
    job.set_cycles_without_progress(0);
  } else if (!attempt.yields()) {
    job.set_cycles_without_progress(job.cycles_without_progress() + 1);
  }
}

// The first retry is immediate; a job that keeps failing waits longer each time.
absl::Duration Backoff(const Options& options, int64_t cycles_without_progress) {
  if (cycles_without_progress < 2) return absl::ZeroDuration();
  const int64_t doublings = std::min<int64_t>(cycles_without_progress - 2, 20);
  return std::min(options.backoff_min * (int64_t{1} << doublings), options.backoff_max);
}

}  // namespace

bool IsClean(const v1::ExitStatus& exit) { return exit.code() == 0 && exit.signal() == 0; }

void AfterAttempt(Draft& draft, v1::Job& job) {
  const v1::Attempt& attempt = *job.attempts().rbegin();
  const v1::Recovery& rules = job.resolved_spec().recovery();
  CountProgress(job, attempt);

  if (job.cancel_requested()) {
    return EndJob(draft, job, v1::JOB_PHASE_CANCELLED, "cancelled by a user");
  }
  // Only what every rank said itself counts: a rank that was lost has not succeeded.
  if (std::ranges::all_of(attempt.ranks(), EndedWell)) {
    return EndJob(draft, job, v1::JOB_PHASE_SUCCEEDED,
                  fmt::format("all {} ranks of attempt {} ended well", attempt.ranks_size(),
                              attempt.number()));
  }
  if (const v1::RankState* rank = FindPermanent(attempt)) {
    return EndJob(draft, job, v1::JOB_PHASE_FAILED,
                  fmt::format("rank {} asked not to be started again: {}", rank->rank(),
                              DescribeExit(rank->exit())));
  }
  if (attempt.yields()) return AfterYield(draft, job);
  // Unset means the spec came without defaults (a test, an old record); retrying is the gentler
  // way.
  const int64_t cycles = rules.has_no_progress_cycles() ? rules.no_progress_cycles() : 3;
  const int64_t restarts = rules.has_max_restarts() ? rules.max_restarts() : 100;
  if (job.cycles_without_progress() >= cycles) {
    return EndJob(draft, job, v1::JOB_PHASE_FAILED,
                  fmt::format("{} attempts in a row gained no step "
                              "(recovery.no_progress_cycles is {}); the last: {}",
                              job.cycles_without_progress(), cycles, attempt.cause()));
  }
  if (job.restarts() >= restarts) {
    return EndJob(draft, job, v1::JOB_PHASE_FAILED,
                  fmt::format("restarted {} times (recovery.max_restarts is {}); the last: {}",
                              job.restarts(), restarts, attempt.cause()));
  }

  job.set_restarts(job.restarts() + 1);
  job.set_phase(v1::JOB_PHASE_RECOVERING);
  job.set_reason(fmt::format("recovering: {}", attempt.cause()));
  const absl::Duration backoff = Backoff(draft.options(), job.cycles_without_progress());
  draft.LiveJob(job.uid()).set_not_before_ns(absl::ToInt64Nanoseconds(draft.clock() + backoff));
  const int64_t from = job.checkpoints().empty() ? 0 : job.checkpoints().rbegin()->step();
  draft.AddEvent(job.uid(), v1::SEVERITY_WARNING, "RECOVERING",
                 fmt::format("attempt {} ended after step {}: {}; going on from step {}{}",
                             attempt.number(), attempt.last_step(), attempt.cause(), from,
                             backoff > absl::ZeroDuration()
                                 ? fmt::format(" in {}", absl::FormatDuration(backoff))
                                 : std::string()),
                 {{"restarts", std::to_string(job.restarts())},
                  {"cycles_without_progress", std::to_string(job.cycles_without_progress())},
                  {"from_step", std::to_string(from)}});
}

}  // namespace mega::core
