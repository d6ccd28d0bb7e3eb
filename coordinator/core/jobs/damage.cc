#include "coordinator/core/jobs/damage.h"

#include <algorithm>
#include <string>

#include "coordinator/core/jobs/attempt.h"
#include "coordinator/core/jobs/phase.h"
#include "coordinator/planner/spec/recovery_rules.h"
#include "fmt/core.h"

namespace mega::core {

void DropDamaged(Draft& draft, v1::Job& job) {
  v1::Attempt& attempt = NewestAttempt(job);
  const v1::RankState* rank = FindOwnExit(attempt, {spec::kExitUnusableCheckpoint});
  if (rank == nullptr || !attempt.has_load()) return;
  const v1::Manifest& load = attempt.load();
  auto& known = *job.mutable_checkpoints();
  const auto damaged = std::ranges::find_if(known, [&](const v1::Manifest& manifest) {
    return manifest.step() == load.step() && manifest.epoch() == load.epoch();
  });
  if (damaged != known.end()) known.erase(damaged);

  BlameRank(attempt, *rank);
  attempt.clear_failed_node();  // the disk of one node may be to blame, or what all of them share
  attempt.set_cause(fmt::format("rank {} on node '{}' could not read the checkpoint of step {}: {}",
                                rank->rank(), rank->node(), load.step(),
                                DescribeExit(rank->exit())));
  draft.AddEvent(
      job.uid(), v1::SEVERITY_ERROR, "CHECKPOINT_DAMAGED",
      fmt::format("the checkpoint of step {} in {} is not used any more: {}; the next attempt "
                  "starts from {}",
                  load.step(), load.directory(), attempt.cause(),
                  known.empty() ? std::string("the beginning")
                                : fmt::format("the checkpoint of step {}", known.rbegin()->step())),
      {{"step", std::to_string(load.step())},
       {"directory", load.directory()},
       {"rank", std::to_string(rank->rank())},
       {"node", rank->node()}});
}

}  // namespace mega::core
