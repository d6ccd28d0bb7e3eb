// How an engine says what became of it. The coordinator decides by them whether to try again.
#pragma once

#include "coordinator/planner/spec/recovery_rules.h"

namespace mega::engine {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;  // may heal: a peer died, a time-out
using spec::kExitBadInput;             // will not heal: data, model or checkpoint is wrong
// The checkpoint that the coordinator chose cannot be read here; an older one may do.
using spec::kExitCheckpointOutOfSight;  // its folder cannot be seen from this node
using spec::kExitUnusableCheckpoint;
inline constexpr int kExitLeaseEnded = 75;  // the lease ended without a renewal
inline constexpr int kExitWorkerGone = 76;  // the worker's socket closed without a handover
using spec::kExitDoNotRequeue;              // reserved: the job asks not to be run again

}  // namespace mega::engine
