// Watches the progress of live attempts and ends one that stands still, on the core's own clock.
// A time in which a worker could not speak, or nobody listened, is no hang: it counts afresh from
// the coordinator's start, from a pause of its loop, and from the return of a node that was silent.
#pragma once

#include "coordinator/core/draft.h"

namespace mega::core {

// The job has a live attempt, and it is watched from now on; what was known of an earlier one goes.
void WatchAttempt(Draft& draft, const v1::Job& job);
// Nothing was heard for a while, of all, or of the ranks of one node.
void CountWatchesAfresh(Draft& draft);
void CountWatchesAfresh(Draft& draft, const NodeId& node);

void OnRankProgress(Draft& draft, const NodeId& node, const v1::RankProgress& progress);
// A report of the current attempt, of any rank.
void NoteStep(Draft& draft, const v1::StepReport& report);
// How long nothing is known to have moved in the job's live attempt, whoever was silent meanwhile;
// zero when it is not watched.
absl::Duration StandstillOf(const Draft& draft, const v1::Job& job);
// At each tick.
void CheckWatches(Draft& draft);

}  // namespace mega::core
