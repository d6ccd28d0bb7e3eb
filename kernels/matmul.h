// Dense matrix products, and the three that a linear layer is made of.
//   T tokens (rows) · I inputs · O outputs; weights are [O, I] as Hugging Face stores them.
// f32 in this release; every view contiguous. Outputs never alias inputs. Bitwise repeatable for
// one device, thread count and library version. Zero rows are fine. Asynchronous on `stream`.
#pragma once

#include "kernels/device/stream.h"
#include "kernels/tensor_view.h"

namespace mega::kernels {

// c_MN = op(a) · op(b) + beta · c_MN, beta 0 or 1. op transposes when its flag is set:
// a is [M,K] (or [K,M]), b is [K,N] (or [N,K]).
void Matmul(Stream& stream, TensorView a, bool transpose_a, TensorView b, bool transpose_b,
            TensorView c_MN, float beta);

// y_TO = x_TI · w_OIᵀ
void LinearForward(Stream& stream, TensorView x_TI, TensorView w_OI, TensorView y_TO);
// dx_TI = dy_TO · w_OI + beta · dx_TI
void LinearBackwardInput(Stream& stream, TensorView dy_TO, TensorView w_OI, TensorView dx_TI,
                         float beta = 0);
// dw_OI += dy_TOᵀ · x_TI, accumulated in f32
void LinearBackwardWeight(Stream& stream, TensorView dy_TO, TensorView x_TI, TensorView dw_OI);

// y_TO += bias_O, and its gradient dbias_O += sum over T of dy_TO.
void AddBias(Stream& stream, TensorView y_TO, TensorView bias_O);
void AddBiasBackward(Stream& stream, TensorView dy_TO, TensorView dbias_O);

}  // namespace mega::kernels
