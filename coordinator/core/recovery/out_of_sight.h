// A rank that sees none of the job's checkpoints from its node: the disk is not mounted there, or
// the job has no checkpoint.directory and they lie in the folder of another worker. They are as
// good as before: the job keeps them, leaves the node out and waits for one that sees them.
#pragma once

#include "coordinator/core/draft.h"
#include "coordinator/core/recovery/ladder.h"

namespace mega::core {

// The rank because of which the newest attempt, which has ended, could not continue. Null: none.
const v1::RankState* FindBlindRank(const v1::Attempt& attempt);

// Blames its node for the end of the attempt; what is done about it, whatever the ladder.
Rung LeaveOutBlind(v1::Attempt& attempt, const v1::RankState& rank);

// Attempt after attempt found nodes that see no checkpoint: somebody has to mount something. The
// job is paused, not failed: it would lose its place in its own history.
void PauseBlind(Draft& draft, v1::Job& job);

// A user has done something about it: nodes that saw no checkpoint are tried again.
void ForgetBlindNodes(v1::Job& job);

}  // namespace mega::core
