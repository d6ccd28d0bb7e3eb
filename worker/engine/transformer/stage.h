// A rank's part of the model as the schedule sees it. Input and weight gradients are apart so that
// zero-bubble schedules are just data. Saved activations belong to (micro-batch) and are freed by
// the backward that uses them last.
#pragma once

#include <cstdint>

#include "worker/engine/tensor/tensor.h"

namespace mega::transformer {

// One micro-batch as the first and last stage need it. B rows · S positions.
struct MicroBatch {
  TensorView tokens_BS;  // i32
  TensorView labels_BS;  // i32, kIgnoredLabel where masked
};

class Stage {
 public:
  virtual ~Stage() = default;
  // x: hidden states from the stage before (undefined on the first). Returns those for the next
  // (undefined on the last, which keeps the loss: see LossSum).
  virtual Tensor Forward(int64_t micro_batch, const MicroBatch& batch, Tensor x) = 0;
  // dy: gradient from the next stage (undefined on the last). Returns that of x (undefined on the
  // first).
  virtual Tensor BackwardInput(int64_t micro_batch, Tensor dy) = 0;
  virtual void BackwardWeight(int64_t micro_batch) = 0;
};

}  // namespace mega::transformer
