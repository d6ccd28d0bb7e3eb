// Element-wise activations. x and y may alias unless said otherwise. f32. Exact at ±large inputs
// (no NaN from exp overflow). Asynchronous on `stream`.
#pragma once

#include "kernels/device/stream.h"
#include "kernels/tensor_view.h"

namespace mega::kernels {

// y = x · sigmoid(x); any shape.
void Silu(Stream& stream, TensorView x, TensorView y);
void SiluBackward(Stream& stream, TensorView dy, TensorView x, TensorView dx);

// gate_up_T2F = [gate | up] in the last dimension; y_TF = silu(gate) · up.  Shazeer 2020,
// arXiv:2002.05202. d_gate_up may alias gate_up.
void SwiGlu(Stream& stream, TensorView gate_up_T2F, TensorView y_TF);
void SwiGluBackward(Stream& stream, TensorView dy_TF, TensorView gate_up_T2F,
                    TensorView d_gate_up_T2F);

}  // namespace mega::kernels
