// AdamW, one fused pass.  Loshchilov & Hutter 2019, arXiv:1711.05101.
//   p -= lr · weight_decay · p;  m, v updated;  p -= lr · m̂ / (sqrt(v̂) + eps)
//   grad is multiplied by grad_scale first (clipping).  step counts from 1.  All f32, same shape.
#pragma once

#include <cstdint>

#include "kernels/device/stream.h"
#include "kernels/tensor_view.h"

namespace mega::kernels {

struct AdamWOptions {
  double lr = 0, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0;
  double grad_scale = 1;
  int64_t step = 1;
};
void AdamW(Stream& stream, const AdamWOptions& options, TensorView param, TensorView grad,
           TensorView exp_avg, TensorView exp_avg_sq);

}  // namespace mega::kernels
