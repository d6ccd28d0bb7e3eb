// Who is next. Whole gangs, highest priority first, then by age: the first that can have its
// devices gets all of them or none, and nobody overtakes it. A job that recovers stands before
// those of its priority that have never run. Passed are only jobs for which no waiting behind would
// help: those that the present fleet, even idle, cannot hold, and those whose namespace holds its
// quota. One that does not fit takes the devices of jobs of lower priority (queue/victims.h).
#pragma once

#include "coordinator/core/draft.h"

namespace mega::core {

// Starts the next where it was, if it recovers and its nodes are alive; otherwise asks for a plan.
// Goes on as long as jobs can be started. Nothing may be drafted when it is called.
void Schedule(Draft& draft);

// An answer to AskPlan. One that was made for another state of the cluster is asked for again.
void OnPlanMade(Draft& draft, const v1::CorePlanMade& made);

// The present fleet cannot hold the job, even idle: others pass it.
bool IsUnfit(const State& state, const JobUid& uid);
// An unfit job is looked at again when the fleet has changed, and not sooner than this after the
// last time.
inline constexpr absl::Duration kLooksAgain = absl::Seconds(1);
bool IsPassed(const State& state, const JobUid& uid);

}  // namespace mega::core
