// A rank's part of the model as the schedule sees it. Input and weight gradients are apart so that
// zero-bubble schedules are just data. Saved activations belong to (micro-batch) and are freed by
// the backward that uses them last.
#pragma once

#include <cstdint>
#include <utility>

#include "worker/engine/tensor/tensor.h"

namespace mega::transformer {

// One micro-batch as the first and last stage need it. B rows · S positions.
struct MicroBatch {
  TensorView tokens_BS;  // i32
  TensorView labels_BS;  // i32, kIgnoredLabel where masked
};

// What a pass over the micro-batches is for.
struct StepMode {
  bool forward_only = false;  // evaluation: nothing is kept, no gradient is touched
  // The micro-batch whose BackwardWeight comes last: gradients are final in it. -1: none.
  int64_t last_backward = -1;
};

class Stage {
 public:
  virtual ~Stage() = default;
  // Before the first Forward of every step or evaluation. Main gradients are zero by then; what an
  // abandoned step left behind is freed.
  virtual void BeginStep(const StepMode& mode) = 0;
  // x: hidden states from the stage before (undefined on the first). Returns those for the next
  // (undefined on the last, which keeps the loss).
  virtual Tensor Forward(int64_t micro_batch, const MicroBatch& batch, Tensor x) = 0;
  // dy: gradient from the next stage (undefined on the last). Returns that of x (undefined on the
  // first).
  virtual Tensor BackwardInput(int64_t micro_batch, Tensor dy) = 0;
  virtual void BackwardWeight(int64_t micro_batch) = 0;
  // Both at once, the same bits: for schedules that do not keep them apart. A stage that alternates
  // them layer by layer holds less memory and reads it while it is still in cache.
  virtual Tensor Backward(int64_t micro_batch, Tensor dy) {
    Tensor dx = BackwardInput(micro_batch, std::move(dy));
    BackwardWeight(micro_batch);
    return dx;
  }
};

}  // namespace mega::transformer
