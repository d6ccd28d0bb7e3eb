// Which checkpoints a job keeps. Their manifests lie in its record, which is written whole at each
// change, copied into the journal and shown to users, and must be one message (2 GiB). So
// Options::most_kept_bytes bounds them, whatever checkpoint.keep says and however many are pinned.
#pragma once

#include <string>

#include "coordinator/core/draft.h"

namespace mega::core {

// A checkpoint has just been committed: of those that nobody has pinned as many of the newest stay
// as checkpoint.keep says, or as fit; it itself in any case.
void RemoveOld(Draft& draft, v1::Job& job);

// Pinned ones may fill half of the room, so that half is left for those that come. Why one more
// cannot be pinned, and what to do; empty if it can.
std::string AgainstPin(const Draft& draft, const v1::Job& job, const v1::Manifest& manifest);

}  // namespace mega::core
