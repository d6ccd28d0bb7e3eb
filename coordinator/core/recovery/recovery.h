// What comes after an attempt: success, another one, or the end of trying.
#pragma once

#include "coordinator/core/draft.h"

namespace mega::core {

// Exit codes with which an engine says that trying again is pointless.
inline constexpr int kExitBadInput = 64;      // EX_USAGE: the same input fails anywhere
inline constexpr int kExitDoNotRequeue = 93;  // the operator's or the engine's own verdict

bool IsClean(const v1::ExitStatus& exit);

// `job`'s newest attempt has just ended: every rank has, and its devices are free.
void AfterAttempt(Draft& draft, v1::Job& job);

}  // namespace mega::core
