// y = x / rms(x) * gamma, row by row.  Zhang & Sennrich 2019, arXiv:1910.07467.
//   x_TD, y_TD  f32, y may alias x      gamma_D  f32
//   rstd_T      f32, kept for RmsNormBackward      eps  added to the mean square
// Accumulates in f32. Bitwise repeatable per device and thread count. Asynchronous on `stream`.
#pragma once

#include "kernels/device/stream.h"
#include "kernels/tensor_view.h"

namespace mega::kernels {

// With zero_centered_gamma the factor is (1 + gamma).
void RmsNorm(Stream& stream, TensorView x_TD, TensorView gamma_D, TensorView y_TD,
             TensorView rstd_T, float eps, bool zero_centered_gamma = false);

// dx_TD = gradient of x (+ dx_TD when accumulate_dx: the residual's share is already there).
void RmsNormBackwardInput(Stream& stream, TensorView dy_TD, TensorView x_TD, TensorView gamma_D,
                          TensorView rstd_T, TensorView dx_TD, bool accumulate_dx,
                          bool zero_centered_gamma = false);
// dgamma_D += its gradient.
void RmsNormBackwardWeight(Stream& stream, TensorView dy_TD, TensorView x_TD, TensorView rstd_T,
                           TensorView dgamma_D);

}  // namespace mega::kernels
