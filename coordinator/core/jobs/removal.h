// Checkpoints beyond checkpoint.keep, or deleted by users: one node removes the folder, and another
// one when that is lost before it has acked the order. Acked, the order is on the worker's own
// disk, and is carried out by whatever worker runs there next; one whose machine never returns
// leaves the folder. It names the attempt that saved the checkpoint: carried out late, it leaves
// what a later one has saved in the same folder.
#pragma once

#include "coordinator/core/draft.h"

namespace mega::core {

// `job` has no more use for the checkpoint. Returns the node that is told so; empty: none is there,
// and the folder stays.
NodeId RemoveCheckpoint(Draft& draft, const v1::Job& job, const v1::Manifest& manifest);
// What lost nodes were to remove is given to others, if there is one. Now and then.
void HandOverRemovals(Draft& draft);
// An order of release 0.1, which names no attempt, and the job has gone back behind the step: it
// saves it again in the same folder, or may do so.
bool IsVoid(const Draft& draft, const v1::DeleteCheckpoint& order);
// The order, which is void, is withdrawn; the job's story tells it.
void Withdraw(Draft& draft, const CommandKey& key, const v1::DeleteCheckpoint& order);
// The node still has to be told to remove something.
bool HasRemovals(const State& state, const NodeId& node);

}  // namespace mega::core
