// Everything a training rank owns, built from its plan, and the loop that trains.
//   Build: spec → model, gradient buffer, optimizer, data, communicators → weights (fresh, or from
//   a checkpoint).   Run: steps, evaluation, checkpoints, reports, until the last step is
//   committed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "mega/v1/trainer.pb.h"
#include "worker/engine/main/trainer_link.h"

namespace mega::engine {

class Rank {
 public:
  // Talks to the worker to find its peers. INVALID_ARGUMENT, NOT_FOUND and DATA_LOSS are what a
  // restart cannot heal.
  static absl::StatusOr<std::unique_ptr<Rank>> Build(const v1::StartTraining& start,
                                                     TrainerLink& link);
  virtual ~Rank() = default;
  // CANCELLED after the step that is under way when the worker asks to stop.
  virtual absl::Status Run() = 0;
  // Ends all waits for the other ranks with `why`, here and there. Thread-safe.
  virtual void Abort(const absl::Status& why) = 0;
};

}  // namespace mega::engine
