// How an engine says what became of it. The coordinator decides by them whether to try again.
#pragma once

#include "coordinator/planner/spec/recovery_rules.h"

namespace mega::engine {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;  // may heal: a peer died, a time-out
using spec::kExitBadInput;             // will not heal: data, model or checkpoint is wrong
// The checkpoint that the coordinator chose cannot be seen from here; another node may see it.
using spec::kExitCheckpointOutOfSight;
// It cannot be read; an older one may do.
using spec::kExitUnusableCheckpoint;
inline constexpr int kExitLeaseEnded = 75;  // the lease ended without a renewal
inline constexpr int kExitWorkerGone = 76;  // the worker's socket closed without a handover
using spec::kExitDoNotRequeue;              // reserved: the job asks not to be run again

}  // namespace mega::engine
