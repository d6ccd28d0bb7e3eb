// Pause and resume: a paused job holds no device and does not stand in the queue; resumed, it
// stands there by the age it always had.
#pragma once

#include <string>

#include "coordinator/core/draft.h"

namespace mega::core {

// Answer their call. Pausing what is paused, and resuming what is not, change nothing.
void PauseJob(Draft& draft, const v1::CoreRequest& request);
void ResumeJob(Draft& draft, const v1::CoreRequest& request);

inline constexpr char kPausedByUser[] = "paused by a user; it holds no device until it is resumed";
// The job has no live attempt (any more) and is to pause, for this reason.
void EnterPause(Draft& draft, v1::Job& job, std::string reason = kPausedByUser);

// The job that a request is about. Null: there is none, and the call has its error.
const v1::Job* FindAsked(Draft& draft, const v1::CoreRequest& request);
// The same, if it has not ended and is not cancelled.
const v1::Job* FindUnfinished(Draft& draft, const v1::CoreRequest& request);

}  // namespace mega::core
