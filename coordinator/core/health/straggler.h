// Ranks that compute slower than their group, round after round. What a rank waits for others is
// not counted, so the slow one shows and not those that wait for it.
#pragma once

#include "coordinator/core/draft.h"

namespace mega::core {

// Seconds that a rank can have measured: no report is trusted.
bool IsDuration(double seconds);

// A step report of the current attempt, of any rank.
void NoteCompute(Draft& draft, const v1::Job& job, v1::JobWatch& watch,
                 const v1::StepReport& report);

}  // namespace mega::core
