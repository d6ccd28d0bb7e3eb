// Retention: removes the folder of one checkpoint.
#pragma once

#include "base/status.h"
#include "mega/v1/worker.pb.h"

namespace mega::daemon {

// Refuses anything but a folder named for the step, and leaves what no checkpoint holds: only plain
// files go, and the folder only if it is empty then. No link is followed. Gone already is fine.
absl::Status RemoveCheckpoint(const v1::DeleteCheckpoint& order);

}  // namespace mega::daemon
