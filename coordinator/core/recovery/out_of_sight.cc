#include "coordinator/core/recovery/out_of_sight.h"

#include <algorithm>
#include <string>
#include <utility>

#include "coordinator/core/jobs/attempt.h"
#include "coordinator/core/jobs/pause.h"
#include "coordinator/core/jobs/phase.h"
#include "coordinator/core/recovery/records.h"
#include "coordinator/planner/spec/recovery_rules.h"
#include "fmt/core.h"

namespace mega::core {

const v1::RankState* FindBlindRank(const v1::Attempt& attempt) {
  return attempt.has_load() ? FindOwnExit(attempt, {spec::kExitCheckpointOutOfSight}) : nullptr;
}

Rung LeaveOutBlind(v1::Attempt& attempt, const v1::RankState& rank) {
  BlameRank(attempt, rank);
  return {.name = kSpare,
          .decided_by =
              fmt::format("its checkpoint of step {} cannot be seen there", attempt.load().step()),
          .by_rule = true,
          .leaves_node_out = true};
}

void PauseBlind(Draft& draft, v1::Job& job) {
  const v1::Attempt& attempt = NewestAttempt(job);
  std::string why = fmt::format(
      "{} attempts in a row did not see its checkpoint of step {} in {} "
      "(last on node '{}'); mount it on the nodes, or bring the node back that "
      "holds it, and resume the job",
      job.cycles_without_progress(), attempt.load().step(), attempt.load().directory(),
      attempt.failed_node());
  draft.AddEvent(job.uid(), v1::SEVERITY_ERROR, "CHECKPOINT_OUT_OF_SIGHT", why,
                 {{"step", std::to_string(attempt.load().step())},
                  {"directory", attempt.load().directory()},
                  {"node", attempt.failed_node()}});
  job.set_pause_requested(true);
  EnterPause(draft, job, "paused: " + std::move(why));
}

void ForgetBlindNodes(v1::Job& job) {
  for (v1::RecoveryRecord& record : *job.mutable_recoveries()) {
    const auto attempt = std::ranges::find(job.attempts(), record.attempt(), &v1::Attempt::number);
    if (attempt != job.attempts().end() && FindBlindRank(*attempt)) record.set_leaves_out(false);
  }
}

}  // namespace mega::core
