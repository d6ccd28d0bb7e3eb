// How far apart two results are, taken in float64.
#pragma once

#include <span>
#include <string>

#include "tests/support/tensors.h"

namespace mega::testing {

// ‖got − want‖₂ / ‖want‖₂; the absolute norm where want is all zeros. Equal infinities agree; a
// NaN, an infinity on one side only, or another length gives infinity.
double RelativeL2(std::span<const float> got, std::span<const float> want);
double RelativeL2(std::span<const float> got, std::span<const double> want);

inline double RelativeL2(const HostTensor& got, const HostTensor& want) {
  return RelativeL2(got.f32(), want.f32());
}

// What a correct float32 kernel meets with room for another order of summation: about 100 times the
// error of one rounding.
inline constexpr double kF32Tolerance = 1e-5;

}  // namespace mega::testing
