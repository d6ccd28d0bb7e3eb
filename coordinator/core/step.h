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
  // carries out the effects, also those of a decision without mutations: they wait for every batch
  // handed out earlier (an answer may speak of a job whose batch is not durable yet). Only
  // `immediate` ones leave at once. Those that wait keep their order, over all decisions, and so do
  // those that do not; but these overtake the others: a lease may reach a worker before a command
  // that was decided earlier.
  std::vector<v1::Mutation> mutations;
  std::vector<v1::Effect> effects;
};

// Applies one input. `event.now` is the time as the shell saw it (best: wall time at its start plus
// CLOCK_BOOTTIME since, which nobody can set); the same state and event give the same decision,
// always. Never fails: a message that makes no sense changes nothing.
//
// The shell's duties: CoreStarted first, after loading the durable part; a CoreTick every 100 ms;
// session numbers that rise; SendToWorker for a session that is gone is dropped.
Decision Step(State& state, const v1::CoreEvent& event);

}  // namespace mega::core
