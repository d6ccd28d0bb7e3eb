// First in, first out, whole gangs: the head of the queue gets all its devices or none, and nobody
// overtakes it. A job that recovers stands before those that have never run.
#pragma once

#include "coordinator/core/draft.h"

namespace mega::core {

// Starts the head where it was, if it recovers and its nodes are alive; otherwise asks for a plan.
// Goes on to the next as long as heads can be started. Nothing may be drafted when it is called.
void Schedule(Draft& draft);

// An answer to AskPlan. One that was made for another state of the cluster is asked for again.
void OnPlanMade(Draft& draft, const v1::CorePlanMade& made);

}  // namespace mega::core
