// Retention: removes the folder of one checkpoint.
#pragma once

#include "base/status.h"
#include "mega/v1/worker.pb.h"

namespace mega::daemon {

// Leaves what no checkpoint holds: only plain files go, and the folder only if it is empty then. No
// link is followed. Gone already is fine, so it may be done again from wherever it stopped.
// What was saved there after the attempt that the order names stays: once a manifest of a later
// attempt lies in it, or slices of one, only slices go that this one does not list, up to the
// order's own attempt. Without a manifest that can be read the names of the slices alone say whose
// they are. An order of release 0.1 names no attempt, and everything goes.
// UNAVAILABLE: the disk refused, and may not the next time. Any other error is for good: the order
// names no folder of that step, or something else lies in it, as another job's checkpoint.
absl::Status RemoveCheckpoint(const v1::DeleteCheckpoint& order);

}  // namespace mega::daemon
