// What spec.recovery may say as a whole.
#pragma once

#include <vector>

#include "coordinator/planner/spec/spec.h"

namespace mega::spec {

// What an engine says with these codes is final, whatever the job's rules: the same input fails
// anywhere (EX_USAGE), and the operator's or the engine's own verdict not to be started again.
inline constexpr int kExitBadInput = 64;
inline constexpr int kExitDoNotRequeue = 93;
// The checkpoint that it was given is missing or damaged: the next attempt takes an older one.
inline constexpr int kExitUnusableCheckpoint = 65;
// None of the job's checkpoints can be seen from the rank's node (EX_NOINPUT): they may be whole,
// and another node may see them.
inline constexpr int kExitCheckpointOutOfSight = 66;

//   recovery.ladder names each rung once, and nothing after stop
//   recovery.rules can be read, name rungs that exist, and only confirm the reserved codes
//   recovery.budgets has no budget of a rung that neither ladder nor rules take
//   resources.nodes.min ≤ desired ≤ max; whoever may shrink or grow has nodes to do it with
void CheckRecovery(const v1::JobSpec& resolved, std::vector<Violation>& out);

}  // namespace mega::spec
