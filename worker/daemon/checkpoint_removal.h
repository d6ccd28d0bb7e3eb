// Retention: removes the folder of one checkpoint.
#pragma once

#include "base/status.h"
#include "mega/v1/worker.pb.h"

namespace mega::daemon {

// Leaves what no checkpoint holds: only plain files go, and the folder only if it is empty then. No
// link is followed. Gone already is fine, so it may be done again from wherever it stopped.
// UNAVAILABLE: the disk refused, and may not the next time. Any other error is for good: the order
// names no folder of that step, or something else lies in it.
absl::Status RemoveCheckpoint(const v1::DeleteCheckpoint& order);

}  // namespace mega::daemon
