// silu(x) = x s(x) with s the sigmoid; silu'(x) = s + x s (1 - s).
#include "kernels/activation.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/activation.cc"  // NOLINT
#include "hwy/foreach_target.h"
// After foreach_target.h, or its second pass would not see them anew.
#include "kernels/cpu/edge.h"
#include "kernels/cpu/simd-inl.h"
#include "kernels/parallel_for.h"

HWY_BEFORE_NAMESPACE();
namespace mega::kernels::HWY_NAMESPACE {

void SiluRange(const float* x, float* y, int64_t n) {
  ForEachVector(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto v = hn::LoadU(d, x + i);
    hn::StoreU(hn::Mul(v, Sigmoid(d, v)), d, y + i);
  });
}

// d silu / dx at v, given s = sigmoid(v).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V SiluSlope(D d, V v, V s) {
  return hn::Mul(s, hn::MulAdd(v, hn::Sub(hn::Set(d, 1.0f), s), hn::Set(d, 1.0f)));
}

void SiluBackwardRange(const float* dy, const float* x, float* dx, int64_t n) {
  ForEachVector(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto v = hn::LoadU(d, x + i);
    hn::StoreU(hn::Mul(hn::LoadU(d, dy + i), SiluSlope(d, v, Sigmoid(d, v))), d, dx + i);
  });
}

void SwiGluRow(const float* gate, const float* up, float* y, int64_t n) {
  ForEachVector(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto g = hn::LoadU(d, gate + i);
    hn::StoreU(hn::Mul(hn::Mul(g, Sigmoid(d, g)), hn::LoadU(d, up + i)), d, y + i);
  });
}

void SwiGluBackwardRow(const float* dy, const float* gate, const float* up, float* dgate,
                       float* dup, int64_t n) {
  ForEachVector(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto g = hn::LoadU(d, gate + i);
    const auto u = hn::LoadU(d, up + i);
    const auto grad = hn::LoadU(d, dy + i);
    const auto s = Sigmoid(d, g);
    hn::StoreU(hn::Mul(hn::Mul(grad, u), SiluSlope(d, g, s)), d, dgate + i);
    hn::StoreU(hn::Mul(grad, hn::Mul(g, s)), d, dup + i);
  });
}

}  // namespace mega::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mega::kernels {
HWY_EXPORT(SiluRange);
HWY_EXPORT(SiluBackwardRange);
HWY_EXPORT(SwiGluRow);
HWY_EXPORT(SwiGluBackwardRow);

namespace {
constexpr int64_t kGrain = 16384;  // elements: below, a second thread costs more than it saves
}

void Silu(Stream& stream, TensorView x, TensorView y) {
  CheckShape(y, x.shape());
  const float* from = Data(x);
  float* to = Data(y);
  ParallelFor(stream, x.elements(), kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(SiluRange)(from + begin, to + begin, end - begin);
  });
}

void SiluBackward(Stream& stream, TensorView dy, TensorView x, TensorView dx) {
  CheckShape(dy, x.shape());
  CheckShape(dx, x.shape());
  const float *grad = Data(dy), *at = Data(x);
  float* to = Data(dx);
  ParallelFor(stream, x.elements(), kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(SiluBackwardRange)
    (grad + begin, at + begin, to + begin, end - begin);
  });
}

void SwiGlu(Stream& stream, TensorView gate_up_T2F, TensorView y_TF) {
  const int64_t T = y_TF.dim(0), F = y_TF.dim(1);
  CheckShape(gate_up_T2F, {T, 2 * F});
  const float* gate_up = Data(gate_up_T2F);
  float* y = Data(y_TF);
  ParallelFor(stream, T, kGrain / (F + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) HWY_DYNAMIC_DISPATCH(SwiGluRow)
    (gate_up + 2 * F * t, gate_up + 2 * F * t + F, y + F * t, F);
  });
}

void SwiGluBackward(Stream& stream, TensorView dy_TF, TensorView gate_up_T2F,
                    TensorView d_gate_up_T2F) {
  const int64_t T = dy_TF.dim(0), F = dy_TF.dim(1);
  CheckShape(gate_up_T2F, {T, 2 * F});
  CheckShape(d_gate_up_T2F, {T, 2 * F});
  const float *dy = Data(dy_TF), *gate_up = Data(gate_up_T2F);
  float* d_gate_up = Data(d_gate_up_T2F);
  ParallelFor(stream, T, kGrain / (F + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t at = 2 * F * t;
      HWY_DYNAMIC_DISPATCH(SwiGluBackwardRow)
      (dy + F * t, gate_up + at, gate_up + at + F, d_gate_up + at, d_gate_up + at + F, F);
    }
  });
}

}  // namespace mega::kernels
#endif
