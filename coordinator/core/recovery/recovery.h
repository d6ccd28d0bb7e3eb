// What comes after an attempt: success, another one, or the end of trying.
#pragma once

#include "coordinator/core/draft.h"

namespace mega::core {

bool IsClean(const v1::ExitStatus& exit);

// `job`'s newest attempt has just ended: every rank has, and its devices are free.
void AfterAttempt(Draft& draft, v1::Job& job);

}  // namespace mega::core
