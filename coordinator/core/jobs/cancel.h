// A job is no longer wanted.
#pragma once

#include "coordinator/core/draft.h"

namespace mega::core {

// Without ranks: CANCELLED at once. With ranks: they are asked to stop, and the job is CANCELLED
// when the last has ended. Idempotent; a job that ended otherwise is FAILED_PRECONDITION.
void Cancel(Draft& draft, const v1::CoreCancel& cancel);

}  // namespace mega::core
