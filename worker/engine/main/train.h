// Task `train`: one rank from attach to exit. Returns the process's exit code.
#pragma once

#include "worker/engine/main/trainer_link.h"

namespace mega::engine {

int Train(const TrainerLink::Options& options);

}  // namespace mega::engine
