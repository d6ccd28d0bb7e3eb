// Keys and values of the tokens seen so far, for generation. The cache also attends, because only
// it knows how its storage is laid out: a paged one takes over without a change above.
#pragma once

#include <cstdint>

#include "worker/engine/tensor/tensor.h"

namespace mega::transformer {

class KvCache {
 public:
  virtual ~KvCache() = default;
  // Positions of `sequence` held before this pass; the same for all layers until Advance.
  virtual int64_t length(int64_t sequence) const = 0;
  virtual int64_t capacity() const = 0;  // positions one sequence may reach
  // Appends the T new positions of one layer, then o_TNH = causal attention of the new queries over
  // all positions of the sequence.
  virtual void AppendAndAttend(Stream& stream, int64_t layer, int64_t sequence, TensorView q_TNH,
                               TensorView k_TGH, TensorView v_TGH, float scale,
                               TensorView o_TNH) = 0;
  // The appended positions count: after the last layer of a pass.
  virtual void Advance(int64_t sequence, int64_t positions) = 0;
};

}  // namespace mega::transformer
