// How a stage exchanges hidden states and their gradients with its neighbours. The executor calls
// it in the order of the schedule; sends may return before the peer has taken the tensor.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "worker/engine/tensor/tensor.h"

namespace mega::pipeline_parallel {

class StageTransport {
 public:
  virtual ~StageTransport() = default;
  // Activations to the next stage, and from the one before.
  virtual absl::Status SendForward(int64_t micro_batch, int64_t chunk, Tensor y) = 0;
  virtual absl::StatusOr<Tensor> RecvForward(int64_t micro_batch, int64_t chunk) = 0;
  // Gradients to the stage before, and from the next one.
  virtual absl::Status SendBackward(int64_t micro_batch, int64_t chunk, Tensor dx) = 0;
  virtual absl::StatusOr<Tensor> RecvBackward(int64_t micro_batch, int64_t chunk) = 0;
};

}  // namespace mega::pipeline_parallel
