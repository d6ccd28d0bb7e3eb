// A checkpoint was committed, and now it cannot be read.
#pragma once

#include "coordinator/core/draft.h"

namespace mega::core {

// The newest attempt has ended. If a rank of it said that it could not read the checkpoint that it
// was to start from, that one is none of the job's any more, with its event, and what comes next
// starts from the one before it; the rank is named as the cause, and no node is blamed. The files
// stay where they are.
void DropDamaged(Draft& draft, v1::Job& job);

}  // namespace mega::core
