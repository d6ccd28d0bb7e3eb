// A job comes in.
#pragma once

#include "coordinator/core/draft.h"

namespace mega::core {

// Idempotent by request_id, also over restarts: the same request gives the same job.
void Submit(Draft& draft, const v1::CoreSubmit& submit);

}  // namespace mega::core
