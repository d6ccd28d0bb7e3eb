// A user's wish to begin an attempt anew.
#pragma once

#include "coordinator/core/draft.h"

namespace mega::core {

// Ends the attempt and starts another from the newest checkpoint, or from the one that is asked for
// (recovery/roll_back.h): no failure, no budget used. A job that waits for its back-off need not
// wait any more, and attempts without progress are counted afresh.
void RestartJob(Draft& draft, const v1::CoreRequest& request);

}  // namespace mega::core
