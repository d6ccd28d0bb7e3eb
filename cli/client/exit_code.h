// megactl's exit codes, stable: scripts rely on them.
#pragma once

#include "absl/status/status.h"

namespace mega::cli {

enum ExitCode : int {
  kExitOk = 0,
  kExitFailure = 1,
  kExitUsage = 2,
  kExitNotFound = 3,
  kExitConflict = 4,
  kExitAuth = 5,
  kExitUnreachable = 6,
  kExitTimeout = 7,
  kExitInvalidSpec = 8,
  // of `wait` and `logs --exit-status`, which end as their job does
  kExitJobFailed = 100,
  kExitJobNotFinished = 101,
  kExitJobNotFound = 102,
  kExitJobCancelled = 103,
  kExitInterrupted = 130,
};

// One line for each code, for the help.
inline constexpr char kExitCodeHelp[] =
    "Exit codes: 0 ok, 1 failure, 2 usage, 3 not found, 4 conflict, 5 not allowed, 6 coordinator\n"
    "unreachable, 7 timeout, 8 invalid job file, 130 interrupted.";

// INVALID_ARGUMENT is an invalid job file when field violations came with it, else wrong usage.
int ExitCodeOf(const absl::Status& status);

}  // namespace mega::cli
