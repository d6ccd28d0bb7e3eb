// A user takes a job back behind its newest checkpoint. The record of it, durable with the job,
// fences the attempt that ran then: nothing that it saves afterwards is a checkpoint of the job.
#pragma once

#include "coordinator/core/draft.h"

namespace mega::core {

// The job goes on from its checkpoint of `step`, or from its beginning if that is 0. Later ones are
// none of its any more. Their folders stay, until the job comes by these steps and saves them
// again. Its live attempt is the caller's to end.
void RollBack(Draft& draft, v1::Job& job, int64_t step);

// The job went back behind what `attempt`, its newest one, was doing.
bool IsRolledBack(const v1::Job& job, const v1::Attempt& attempt);

}  // namespace mega::core
