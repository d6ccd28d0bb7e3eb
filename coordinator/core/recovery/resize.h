// How many nodes a job runs on: as many as it wants, fewer after a loss that nothing makes good,
// more again when there is room, another number when a user says so. The planner is asked for a
// count, and makes the layout; the global batch stays what it is.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "coordinator/core/draft.h"

namespace mega::core {

// What ScaleJob asked for last, or resources.nodes.desired.
int64_t WantedNodes(const v1::Job& job);
// The job has run, and may go on with fewer nodes than it wants: elastic.on_loss or a rung of the
// ladder says so, resources.nodes.min leaves room, and its budget is not used up.
bool MayShrink(const v1::Job& job, absl::Time now);
// How many nodes the planner is asked for now: what the job wants, until elastic.shrink_after has
// passed without room for it; then as many as have room, if these suffice.
int64_t NodesToAsk(const Draft& draft, const v1::Job& job);
// How many nodes are left for the job if it does without `lost`; 0 when these are too few.
int64_t NodesAfterLoss(const Draft& draft, const v1::Job& job, const NodeId& lost);
// How long the job still waits for as many as it wants; zero when it does not wait for that.
absl::Duration ShrinksIn(const Draft& draft, const v1::Job& job);
// The job's spec as the planner sees it: with this many nodes, and its data-parallel size in
// proportion.
v1::JobSpec SpecFor(const v1::Job& job, int64_t nodes);
// May it go on with the nodes of its newest attempt, as far as their number is concerned?
bool IsRightSize(const Draft& draft, const v1::Job& job);

// The newest attempt has its nodes: a shrink or a growth is recorded as such.
void NoteSize(Draft& draft, v1::Job& job);
// The checkpoint of `step` has just been committed: the time to become larger or smaller.
void ResizeIfSaved(Draft& draft, v1::Job& job, int64_t step);

void ScaleJob(Draft& draft, const v1::CoreRequest& request);

}  // namespace mega::core
