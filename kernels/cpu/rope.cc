#include "kernels/rope.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rope.cc"  // NOLINT
#include "hwy/foreach_target.h"
#include "kernels/cpu/edge.h"
#include "kernels/cpu/simd-inl.h"
#include "kernels/parallel_for.h"

HWY_BEFORE_NAMESPACE();
namespace mega::kernels::HWY_NAMESPACE {

// One token: N heads of H, each turned by `sign` times the angles of half = R / 2 pairs.
void TurnHalves(float* x, int64_t N, int64_t H, int64_t half, const float* cos, const float* sin,
                float sign) {
  ForEachVector(half, [&](auto d, int64_t i) HWY_ATTR {
    const auto c = hn::LoadU(d, cos + i);
    const auto s = hn::Mul(hn::LoadU(d, sin + i), hn::Set(d, sign));
    for (int64_t n = 0; n < N; ++n) {
      float* low = x + n * H + i;
      const auto a = hn::LoadU(d, low), b = hn::LoadU(d, low + half);
      hn::StoreU(hn::NegMulAdd(b, s, hn::Mul(a, c)), d, low);
      hn::StoreU(hn::MulAdd(a, s, hn::Mul(b, c)), d, low + half);
    }
  });
}

void TurnPairs(float* x, int64_t N, int64_t H, int64_t half, const float* cos, const float* sin,
               float sign) {
  ForEachVector(half, [&](auto d, int64_t i) HWY_ATTR {
    const auto c = hn::LoadU(d, cos + i);
    const auto s = hn::Mul(hn::LoadU(d, sin + i), hn::Set(d, sign));
    for (int64_t n = 0; n < N; ++n) {
      float* pairs = x + n * H + 2 * i;
      hn::Vec<decltype(d)> a, b;
      hn::LoadInterleaved2(d, pairs, a, b);
      hn::StoreInterleaved2(hn::NegMulAdd(b, s, hn::Mul(a, c)), hn::MulAdd(a, s, hn::Mul(b, c)), d,
                            pairs);
    }
  });
}

}  // namespace mega::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mega::kernels {
HWY_EXPORT(TurnHalves);
HWY_EXPORT(TurnPairs);

namespace {

void Turn(Stream& stream, TensorView x_TNH, TensorView position_rows_T, TensorView cos_PR2,
          TensorView sin_PR2, RopeStyle style, float sign) {
  const int64_t T = x_TNH.dim(0), N = x_TNH.dim(1), H = x_TNH.dim(2);
  const int64_t P = cos_PR2.dim(0), half = cos_PR2.dim(1);
  CheckShape(position_rows_T, {T});
  CheckShape(sin_PR2, {P, half});
  MEGA_CHECK_LE(2 * half, H);
  const int32_t* rows = Data<const int32_t>(position_rows_T);
  const float *cos = Data(cos_PR2), *sin = Data(sin_PR2);
  float* x = Data(x_TNH);
  const auto turn = style == RopeStyle::kHalf ? HWY_DYNAMIC_DISPATCH(TurnHalves)
                                              : HWY_DYNAMIC_DISPATCH(TurnPairs);
  ParallelFor(stream, T, 16384 / (N * H + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      MEGA_CHECK(rows[t] >= 0 && rows[t] < P);
      turn(x + t * N * H, N, H, half, cos + rows[t] * half, sin + rows[t] * half, sign);
    }
  });
}

}  // namespace

void RopeTable(Stream& stream, std::span<const int32_t> positions, double theta, TensorView cos_PR2,
               TensorView sin_PR2) {
  const auto P = static_cast<int64_t>(positions.size());
  const int64_t half = cos_PR2.dim(1);
  CheckShape(cos_PR2, {P, half});
  CheckShape(sin_PR2, {P, half});
  float *cos = Data(cos_PR2), *sin = Data(sin_PR2);
  ParallelFor(stream, P, 256, [&](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < half; ++i) {
      const double frequency = std::pow(theta, -static_cast<double>(i) / half);
      for (int64_t p = begin; p < end; ++p) {
        const double angle = positions[p] * frequency;
        cos[p * half + i] = static_cast<float>(std::cos(angle));
        sin[p * half + i] = static_cast<float>(std::sin(angle));
      }
    }
  });
}

void RopeForward(Stream& stream, TensorView x_TNH, TensorView position_rows_T, TensorView cos_PR2,
                 TensorView sin_PR2, RopeStyle style) {
  Turn(stream, x_TNH, position_rows_T, cos_PR2, sin_PR2, style, 1);
}

void RopeBackward(Stream& stream, TensorView dx_TNH, TensorView position_rows_T, TensorView cos_PR2,
                  TensorView sin_PR2, RopeStyle style) {
  Turn(stream, dx_TNH, position_rows_T, cos_PR2, sin_PR2, style, -1);
}

}  // namespace mega::kernels
#endif
