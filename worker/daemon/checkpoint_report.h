// What the coordinator is told of a rank's part of a checkpoint.
#pragma once

#include "mega/v1/worker.pb.h"
#include "worker/daemon/rank_key.h"

namespace mega::daemon {

// The part, or, when it is too large for a message, that the save has failed: the coordinator would
// refuse the message and with it the session, each time anew.
v1::WorkerMessage CheckpointReport(const RankKey& key, v1::CheckpointPart part);

}  // namespace mega::daemon
