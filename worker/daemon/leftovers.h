// What an earlier incarnation left: its engines are killed before this one says hello.
#pragma once

#include "absl/time/time.h"
#include "mega/v1/worker.pb.h"

namespace mega::daemon {

// Kills the processes of `record` that still are what they were (pid and start time, same boot),
// waits for their end up to `wait`, and turns every rank of the record into an exit. False when one
// did not die: its rank stays in the record, and its device stays taken.
bool KillLeftovers(v1::WorkerRecord& record, const std::string& boot_id,
                   const std::string& state_dir, absl::Duration wait);

}  // namespace mega::daemon
