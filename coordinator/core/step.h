// The whole of the coordinator's decisions, as one pure function. Clock, network, store, spawn and
// randomness are outside; the simulator and the binary run this same code.
#pragma once

#include <vector>

#include "absl/time/time.h"
#include "coordinator/core/state.h"
#include "mega/v1/coordinator.pb.h"

namespace mega::core {

struct Decision {
  // In order; already applied to the state that Step was given. The shell makes them durable, then
  // carries out the effects (except `immediate` ones, which need not wait).
  std::vector<v1::Mutation> mutations;
  std::vector<v1::Effect> effects;
};

// Applies one input. `event.now` is wall time as the shell saw it; the same state and event give
// the same decision, always. Never fails: a message that makes no sense changes nothing.
Decision Step(State& state, const v1::CoreEvent& event);

}  // namespace mega::core
