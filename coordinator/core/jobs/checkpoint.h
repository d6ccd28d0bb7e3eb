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
// What the job keeps, to the nodes of its newest attempt (manifest/kept.h). Its rank 0 writes each
// manifest.json that is missing, and its ranks remove what earlier attempts saved of other steps.
// Once its ranks are there to hear it.
void TellKept(Draft& draft, const v1::Job& job);

}  // namespace mega::core
