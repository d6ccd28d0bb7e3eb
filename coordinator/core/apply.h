// The only way durable state changes: the running core, the store's Load and replay all come here.
#pragma once

#include "coordinator/core/state.h"

namespace mega::core {

// Also keeps the index in step.
void Apply(State& state, const v1::Mutation& mutation);

}  // namespace mega::core
