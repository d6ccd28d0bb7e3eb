// What is forgotten: jobs that ended long ago, with their events and steps, and nodes that have
// been lost for long. Checkpoints on disk stay where they are.
#pragma once

#include "absl/time/time.h"
#include "coordinator/core/draft.h"

namespace mega::core {

// At each tick; a little at a time.
void Forget(Draft& draft, absl::Duration last_tick);
// For want of room: the lost node that was heard of least lately. False: none may be forgotten.
bool ForgetOldestNode(Draft& draft);

}  // namespace mega::core
