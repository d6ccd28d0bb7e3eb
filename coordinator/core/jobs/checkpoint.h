// Checkpoints become real here: when every rank's part is durable, and not before.
#pragma once

#include "coordinator/core/draft.h"

namespace mega::core {

// With the last part the manifest is committed, once per (job, attempt, step), if the attempt's
// epoch is the job's newest and the job has not been taken back behind it. The pointer to the
// newest checkpoint never moves back by a part.
void OnCheckpointPart(Draft& draft, const NodeId& node, const v1::CheckpointPart& part);
// A failed save is an event; the job goes on, and the other ranks take their parts of the step
// back. Only a rank of the live attempt can fail to save.
void OnCheckpointFailed(Draft& draft, const NodeId& node, const v1::CheckpointFailed& failed);

}  // namespace mega::core
