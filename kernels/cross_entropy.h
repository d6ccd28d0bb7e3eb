// Softmax cross-entropy over a vocabulary, one row a token, fused: one pass for max and sum, one
// for the gradient.
//   logits_TV f32 · labels_T i32, -100 = masked (loss 0, gradient 0) · loss_T, lse_T f32
// A label outside [0, V) other than -100 is a broken invariant. Asynchronous on `stream`.
#pragma once

#include "kernels/device/stream.h"
#include "kernels/tensor_view.h"

namespace mega::kernels {

inline constexpr int32_t kIgnoredLabel = -100;

void CrossEntropyForward(Stream& stream, TensorView logits_TV, TensorView labels_T,
                         TensorView loss_T, TensorView lse_T);
// dlogits_TV = scale · (softmax(logits) - onehot(label)); may alias logits_TV.
void CrossEntropyBackward(Stream& stream, TensorView logits_TV, TensorView labels_T,
                          TensorView lse_T, float scale, TensorView dlogits_TV);

}  // namespace mega::kernels
