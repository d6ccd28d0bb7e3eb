#include "coordinator/core/recovery/recovery.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "coordinator/core/jobs/damage.h"
#include "coordinator/core/jobs/pause.h"
#include "coordinator/core/jobs/phase.h"
#include "coordinator/core/jobs/time_limit.h"
#include "coordinator/core/jobs/yield.h"
#include "coordinator/core/recovery/ladder.h"
#include "coordinator/core/recovery/out_of_sight.h"
#include "coordinator/core/recovery/records.h"
#include "coordinator/core/recovery/roll_back.h"
#include "coordinator/planner/spec/recovery_rules.h"
#include "fmt/core.h"

namespace mega::core {
namespace {

bool EndedWell(const v1::RankState& rank) { return rank.exited() && IsClean(rank.exit()); }

// Counts attempts in a row that gained nothing: no step beyond all earlier ones, and no checkpoint
// beyond their own start. Where newer checkpoints were lost it takes many attempts to come by the
// earlier steps again.
void CountProgress(v1::Job& job, const v1::Attempt& attempt) {
  if (attempt.last_step() > job.progress_step() || NewestCheckpoint(job) > attempt.start_step()) {
    job.set_progress_step(std::max(job.progress_step(), attempt.last_step()));
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

void Record(Draft& draft, v1::Job& job, const Rung& rung) {
  const v1::Attempt& attempt = NewestAttempt(job);
  v1::RecoveryRecord record;
  *record.mutable_time() = draft.wall();
  record.set_rung(std::string(rung.name));
  record.set_cause(attempt.cause());
  record.set_attempt(attempt.number());
  record.set_from_step(NewestCheckpoint(job));
  record.set_lost_steps(std::max<int64_t>(0, attempt.last_step() - NewestCheckpoint(job)));
  record.set_node(attempt.failed_node());
  record.set_decided_by(rung.decided_by);
  record.set_by_rule(rung.by_rule);
  record.set_leaves_out(rung.leaves_node_out);
  if (rung.leaves_node_out) record.add_nodes_out(attempt.failed_node());
  AddRecord(job, std::move(record), FromProto(draft.wall()));
}

// `decided_by` is for the record; the reason says it in full.
void StopTrying(Draft& draft, v1::Job& job, std::string decided_by, std::string reason) {
  Record(draft, job, {kStop, std::move(decided_by)});
  EndJob(draft, job, v1::JOB_PHASE_FAILED, std::move(reason));
}

// Once more, as the rung says.
void Climb(Draft& draft, v1::Job& job, const Rung& rung) {
  Record(draft, job, rung);
  const v1::Attempt& attempt = NewestAttempt(job);
  job.set_restarts(job.restarts() + 1);
  job.set_phase(v1::JOB_PHASE_RECOVERING);
  job.set_reason(fmt::format("recovering: {}", attempt.cause()));
  const absl::Duration backoff = Backoff(draft.options(), job.cycles_without_progress());
  draft.LiveJob(job.uid()).set_not_before_ns(absl::ToInt64Nanoseconds(draft.clock() + backoff));
  const Budget budget = RestartBudget(job, FromProto(draft.wall()));
  const int64_t from = NewestCheckpoint(job);
  std::string what(rung.name);
  if (rung.leaves_node_out) what += fmt::format(" without node '{}'", attempt.failed_node());
  draft.AddEvent(
      job.uid(), v1::SEVERITY_WARNING, "RECOVERING",
      fmt::format(
          "attempt {} ended after step {}: {}; going on from step {}{}: {} ({}), restart {} "
          "of {} within {}",
          attempt.number(), attempt.last_step(), attempt.cause(), from,
          backoff > absl::ZeroDuration() ? fmt::format(" in {}", absl::FormatDuration(backoff))
                                         : std::string(),
          what, rung.decided_by, budget.used, budget.limit,
          absl::FormatDuration(RecoveryWindow(job))),
      {{"restarts", std::to_string(job.restarts())},
       {"cycles_without_progress", std::to_string(job.cycles_without_progress())},
       {"from_step", std::to_string(from)},
       {"rung", std::string(rung.name)},
       {"decided_by", rung.decided_by},
       {"restarts_left", std::to_string(std::max<int64_t>(0, budget.limit - budget.used))}});
}

}  // namespace

bool IsClean(const v1::ExitStatus& exit) { return exit.code() == 0 && exit.signal() == 0; }

void AfterAttempt(Draft& draft, v1::Job& job) {
  v1::Attempt& attempt = NewestAttempt(job);
  CountProgress(job, attempt);
  DropDamaged(draft, job);
  // Where it ended is not where the job goes on, nor the end of the job.
  const bool is_rolled_back = IsRolledBack(job, attempt);
  if (is_rolled_back) job.set_progress_step(NewestCheckpoint(job));

  if (job.cancel_requested()) {
    return EndJob(draft, job, v1::JOB_PHASE_CANCELLED, "cancelled by a user");
  }
  // Only what every rank said itself counts: a rank that was lost has not succeeded.
  if (!is_rolled_back && std::ranges::all_of(attempt.ranks(), EndedWell)) {
    return EndJob(draft, job, v1::JOB_PHASE_SUCCEEDED,
                  fmt::format("all {} ranks of attempt {} ended well", attempt.ranks_size(),
                              attempt.number()));
  }
  // Another attempt would end the same way.
  if (const v1::RankState* rank =
          FindOwnExit(attempt, {spec::kExitBadInput, spec::kExitDoNotRequeue})) {
    return StopTrying(draft, job,
                      fmt::format("exit code {} of rank {}", rank->exit().code(), rank->rank()),
                      fmt::format("rank {} asked not to be started again: {}", rank->rank(),
                                  DescribeExit(rank->exit())));
  }
  if (IsTimeUp(job, FromProto(draft.wall()))) {
    return StopTrying(
        draft, job, "scheduling.time_limit",
        fmt::format("it held its devices for {} (scheduling.time_limit is {}); its newest "
                    "checkpoint is of step {}",
                    absl::FormatDuration(
                        absl::Trunc(TimeUsed(job, FromProto(draft.wall())), absl::Seconds(1))),
                    absl::FormatDuration(FromProto(job.resolved_spec().scheduling().time_limit())),
                    NewestCheckpoint(job)));
  }
  if (attempt.yields()) return AfterYield(draft, job);
  std::optional<Rung> rung;
  if (const v1::RankState* blind = FindBlindRank(attempt)) rung = LeaveOutBlind(attempt, *blind);
  if (const Budget cycles = CycleBudget(job); cycles.is_used_up()) {
    if (rung) return PauseBlind(draft, job);
    return StopTrying(draft, job, "recovery.no_progress_cycles",
                      fmt::format("{} attempts in a row gained no step "
                                  "(recovery.no_progress_cycles is {}); the last: {}",
                                  cycles.used, cycles.limit, attempt.cause()));
  }
  if (const Budget restarts = RestartBudget(job, FromProto(draft.wall())); restarts.is_used_up()) {
    return StopTrying(draft, job, "recovery.max_restarts",
                      fmt::format("restarted {} times within {} (recovery.max_restarts is {}); the "
                                  "last: {}",
                                  restarts.used, absl::FormatDuration(RecoveryWindow(job)),
                                  restarts.limit, attempt.cause()));
  }
  if (!rung) rung = ChooseRung(draft, job);
  if (rung->name != kStop) {
    Climb(draft, job, *rung);
    // Asked for while the failed attempt was ending.
    if (job.pause_requested()) EnterPause(draft, job);
    return;
  }
  StopTrying(draft, job, rung->decided_by,
             fmt::format("stopped by {}; the last: {}", rung->decided_by, attempt.cause()));
}

}  // namespace mega::core
