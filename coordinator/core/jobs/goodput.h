// The ledger of a job's time: every second of its wall clock, and every second of the devices that
// it holds, belongs to one cause. The sums are exact, survive a restart of the coordinator, and do
// not grow with the number of attempts.
//   queued      waits for devices: new, preempted, drained, scaled       (no devices)
//   recovering  after a failure: no devices until it is placed again; with devices, the standstill
//               before the failure was known
//   paused      a user holds it                                          (no devices)
//   starting    from its placement until its ranks are connected; to the first step without a
//               checkpoint to load
//   restoring   from then to the first step, when there is one
//   training    steps made for the first time; waiting for snapshots is part of them
//   rework      steps that an earlier attempt has made, and that are made again
//   saving      asked to give its devices up, until it has saved
//   stopping    until the last rank is known to have ended
#pragma once

#include <string_view>

#include "absl/time/time.h"
#include "mega/v1/job.pb.h"

namespace mega::core {

// What the job does, by its durable record; empty once it has ended.
std::string_view CauseOfTime(const v1::Job& job);

// Charges the time since the last call to what was going on, and notes what is from now on. Time
// that was set back charges nothing until it has caught up.
void ChargeTime(v1::Job& job, absl::Time now);

// A failure is known now and nothing has moved for `still`: so long the job did not train.
void ChargeStandstill(v1::Job& job, absl::Time now, absl::Duration still);

// The open span is rework, and the newest attempt has made `step`: rework is over.
bool EndsRework(const v1::Job& job, int64_t step);

}  // namespace mega::core
