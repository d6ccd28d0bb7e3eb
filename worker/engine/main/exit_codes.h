// How an engine says what became of it. The coordinator decides by them whether to try again.
#pragma once

namespace mega::engine {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;         // may heal: a peer died, a time-out
inline constexpr int kExitBadInput = 64;      // will not heal: data, model or checkpoint is wrong
inline constexpr int kExitLeaseEnded = 75;    // the lease ended without a renewal
inline constexpr int kExitWorkerGone = 76;    // the worker's socket closed without a handover
inline constexpr int kExitDoNotRequeue = 93;  // reserved: the job asks not to be run again

}  // namespace mega::engine
