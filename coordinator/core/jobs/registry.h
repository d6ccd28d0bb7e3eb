// What users ask of a job's checkpoints: that one stays, that one goes, that one is made now.
#pragma once

#include "coordinator/core/draft.h"

namespace mega::core {

// Each answers its call; the first two do the same for jobs that have ended.
//
// Retention leaves a pinned checkpoint alone, and checkpoint.keep counts the others only. Unpinned
// it is one of these again, from the next checkpoint that is committed on. What pinned ones may
// fill is bounded (kept.h).
void PinCheckpoint(Draft& draft, const v1::CoreRequest& request);
// The checkpoint is none of the job's any more, and a node removes its folder, but nothing that a
// later attempt has saved there (removal.h). The newest and a pinned one go by force alone, and one
// from which ranks are starting does not go at all.
void DeleteCheckpoint(Draft& draft, const v1::CoreRequest& request);

// The ranks save after the step that they are in; the answer does not wait for it. A job whose
// ranks do not train has nothing to save. Asked again before they have heard it changes nothing.
void SaveCheckpoint(Draft& draft, const v1::CoreRequest& request);

// The job's checkpoint of the step. Null: it has none, and the call has its error, which names
// those it has.
const v1::Manifest* FindCheckpoint(Draft& draft, int64_t call, const v1::Job& job, int64_t step);

}  // namespace mega::core
