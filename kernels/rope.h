// Rotary position embedding.  Su et al. 2021, arXiv:2104.09864.
//   T tokens · N heads · H head size · R rotary size (R ≤ H, even; the rest of a head passes
//   through) kHalf (Llama): pairs (i, i + R/2).  kInterleaved (GPT-J): pairs (2i, 2i + 1).
// Backward is the rotation by the negative angle. In place. f32. Asynchronous on `stream`.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/device/stream.h"
#include "kernels/tensor_view.h"

namespace mega::kernels {

enum class RopeStyle { kHalf, kInterleaved };

// cos_PR2, sin_PR2 [positions, R/2]: row p holds the angles of positions[p]. Angles in double.
void RopeTable(Stream& stream, std::span<const int32_t> positions, double theta, TensorView cos_PR2,
               TensorView sin_PR2);

// Row t of x_TNH is turned by the angles of table row position_rows_T[t] (i32).
void RopeForward(Stream& stream, TensorView x_TNH, TensorView position_rows_T, TensorView cos_PR2,
                 TensorView sin_PR2, RopeStyle style);
void RopeBackward(Stream& stream, TensorView dx_TNH, TensorView position_rows_T, TensorView cos_PR2,
                  TensorView sin_PR2, RopeStyle style);

}  // namespace mega::kernels
