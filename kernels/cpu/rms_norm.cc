// With r = 1 / sqrt(mean(x²) + eps) and g the factor (gamma or 1 + gamma):
//   y = x r g      dx = r (dy g - x r² mean(dy g x))      dgamma = sum over rows of dy x r
#include "kernels/rms_norm.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rms_norm.cc"  // NOLINT
#include "hwy/foreach_target.h"
#include "kernels/cpu/column_sum-inl.h"
#include "kernels/cpu/edge.h"
#include "kernels/cpu/simd-inl.h"
#include "kernels/parallel_for.h"

HWY_BEFORE_NAMESPACE();
namespace mega::kernels::HWY_NAMESPACE {

// `shift` is 1 for zero-centred gamma, else 0; adding 0 changes no bit of a factor.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Factor(D d, const float* gamma, int64_t i, float shift) {
  return hn::Add(hn::LoadU(d, gamma + i), hn::Set(d, shift));
}

float RmsNormRow(const float* x, const float* gamma, float shift, float eps, float* y, int64_t D) {
  const float squares = RowSum(D, [&](auto d, int64_t i) HWY_ATTR {
    const auto v = hn::LoadU(d, x + i);
    return hn::Mul(v, v);
  });
  const float rstd = 1.0f / std::sqrt(squares / static_cast<float>(D) + eps);
  ForEachVector(D, [&](auto d, int64_t i) HWY_ATTR {
    const auto scaled = hn::Mul(hn::LoadU(d, x + i), hn::Set(d, rstd));
    hn::StoreU(hn::Mul(scaled, Factor(d, gamma, i, shift)), d, y + i);
  });
  return rstd;
}

void RmsNormBackwardInputRow(const float* dy, const float* x, const float* gamma, float shift,
                             float rstd, bool accumulate, float* dx, int64_t D) {
  const float dot = RowSum(D, [&](auto d, int64_t i) HWY_ATTR {
    const auto g = hn::Mul(hn::LoadU(d, dy + i), Factor(d, gamma, i, shift));
    return hn::Mul(g, hn::LoadU(d, x + i));
  });
  const float pull = -rstd * rstd * rstd * dot / static_cast<float>(D);
  ForEachVector(D, [&](auto d, int64_t i) HWY_ATTR {
    const auto g = hn::Mul(hn::LoadU(d, dy + i), Factor(d, gamma, i, shift));
    auto grad = hn::MulAdd(hn::LoadU(d, x + i), hn::Set(d, pull), hn::Mul(g, hn::Set(d, rstd)));
    if (accumulate) grad = hn::Add(grad, hn::LoadU(d, dx + i));
    hn::StoreU(grad, d, dx + i);
  });
}

void RmsNormBackwardWeightColumns(const float* dy, const float* x, const float* rstd, int64_t T,
                                  int64_t D, int64_t begin, int64_t end, float* dgamma) {
  ColumnSum(T, begin, end, dgamma, [&](auto d, int64_t t, int64_t i) HWY_ATTR {
    const auto scaled = hn::Mul(hn::LoadU(d, x + t * D + i), hn::Set(d, rstd[t]));
    return hn::Mul(hn::LoadU(d, dy + t * D + i), scaled);
  });
}

}  // namespace mega::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mega::kernels {
HWY_EXPORT(RmsNormRow);
HWY_EXPORT(RmsNormBackwardInputRow);
HWY_EXPORT(RmsNormBackwardWeightColumns);

namespace {
constexpr int64_t kGrain = 16384;  // elements: below, a second thread costs more than it saves
}

void RmsNorm(Stream& stream, TensorView x_TD, TensorView gamma_D, TensorView y_TD,
             TensorView rstd_T, float eps, bool zero_centered_gamma) {
  const int64_t T = x_TD.dim(0), D = x_TD.dim(1);
  CheckShape(gamma_D, {D});
  CheckShape(y_TD, {T, D});
  CheckShape(rstd_T, {T});
  const float *x = Data(x_TD), *gamma = Data(gamma_D);
  float *y = Data(y_TD), *rstd = Data(rstd_T);
  ParallelFor(stream, T, kGrain / (D + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      rstd[t] = HWY_DYNAMIC_DISPATCH(RmsNormRow)(x + t * D, gamma, zero_centered_gamma ? 1 : 0, eps,
                                                 y + t * D, D);
  });
}

void RmsNormBackwardInput(Stream& stream, TensorView dy_TD, TensorView x_TD, TensorView gamma_D,
                          TensorView rstd_T, TensorView dx_TD, bool accumulate_dx,
                          bool zero_centered_gamma) {
  const int64_t T = x_TD.dim(0), D = x_TD.dim(1);
  CheckShape(dy_TD, {T, D});
  CheckShape(gamma_D, {D});
  CheckShape(rstd_T, {T});
  CheckShape(dx_TD, {T, D});
  const float *dy = Data(dy_TD), *x = Data(x_TD), *gamma = Data(gamma_D), *rstd = Data(rstd_T);
  float* dx = Data(dx_TD);
  ParallelFor(stream, T, kGrain / (D + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) HWY_DYNAMIC_DISPATCH(RmsNormBackwardInputRow)
    (dy + t * D, x + t * D, gamma, zero_centered_gamma ? 1 : 0, rstd[t], accumulate_dx, dx + t * D,
     D);
  });
}

void RmsNormBackwardWeight(Stream& stream, TensorView dy_TD, TensorView x_TD, TensorView rstd_T,
                           TensorView dgamma_D) {
  const int64_t T = x_TD.dim(0), D = x_TD.dim(1);
  CheckShape(dy_TD, {T, D});
  CheckShape(rstd_T, {T});
  CheckShape(dgamma_D, {D});
  const float *dy = Data(dy_TD), *x = Data(x_TD), *rstd = Data(rstd_T);
  float* dgamma = Data(dgamma_D);
  ParallelFor(stream, D, std::max<int64_t>(64, kGrain / (T + 1)), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(RmsNormBackwardWeightColumns)(dy, x, rstd, T, D, begin, end, dgamma);
  });
}

}  // namespace mega::kernels
#endif
