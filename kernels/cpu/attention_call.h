// What the vector loops of attention are given: sizes, raw rows, and one call's scratch sizes.
#pragma once

#include <cstdint>

#include "kernels/cpu/attention_mask.h"

namespace mega::kernels {

struct AttentionCall {
  AttentionShape shape;
  float scale;
  const KeyRange* ranges;  // S of them
  const float *q, *k, *v;
  float *o, *lse;  // backward reads them
  // Backward only.
  const float* dout = nullptr;
  float *dq = nullptr, *dk = nullptr, *dv = nullptr;

  // Element (b, row, head, 0) of a [B, rows, heads, width] tensor.
  template <typename T>
  static T* Row(T* data, int64_t rows, int64_t heads, int64_t width, int64_t b, int64_t row,
                int64_t head) {
    return data + ((b * rows + row) * heads + head) * width;
  }
};

}  // namespace mega::kernels
