// Vector pieces that ops share, compiled once per target (no include guard across targets).
#if defined(MEGA_KERNELS_CPU_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MEGA_KERNELS_CPU_SIMD_INL_H_
#undef MEGA_KERNELS_CPU_SIMD_INL_H_
#else
#define MEGA_KERNELS_CPU_SIMD_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace mega::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
// One element: the tail of a row runs the same code as its vectors.
using F32x1 = hn::CappedTag<float, 1>;

inline int64_t Lanes() { return static_cast<int64_t>(hn::Lanes(F32())); }

// f(tag, i) for every full vector of [0, n), then for every element left.
template <typename F>
HWY_INLINE void ForEachVector(int64_t n, F&& f) {
  const F32 d;
  const int64_t lanes = Lanes();
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) f(d, i);
  for (; i < n; ++i) f(F32x1(), i);
}

// e^x for x < 88, which softmax and sigmoid never exceed. Relative error below 1.2e-7 where the
// result is normal: Cody and Waite's reduction x = n ln 2 + r, |r| <= ln 2 / 2, and a minimax
// polynomial for e^r (Cephes expf). Exactly 0 below -87.33, NaN for NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpBelow88(D d, V x) {
  const hn::RebindToSigned<D> di;
  // Adding 1.5 · 2^23 + 127 rounds to an integer and leaves n + 127, the exponent of 2^n, in the
  // low bits.
  const V magic = hn::Set(d, 12583039.0f);
  const V t = hn::MulAdd(x, hn::Set(d, 1.44269504088896341f), magic);
  const V n = hn::Sub(t, magic);
  const V r =
      hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x));
  V p = hn::Set(d, 1.9875691500e-4f);
  p = hn::MulAdd(p, r, hn::Set(d, 1.3981999507e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 8.3334519073e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1665795894e-2f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.6666665459e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.5f));
  p = hn::MulAdd(hn::Mul(r, r), p, hn::Add(r, hn::Set(d, 1.0f)));
  const V power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, t)));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.33f)), hn::Mul(p, power));
}

// 1 / (1 + e^-x), computed from e^-|x| so that nothing overflows.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V e = ExpBelow88(d, hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
}

// Sum of term(tag, i) over [0, n): four running vectors and a tail, added in a fixed order.
template <typename F>
HWY_INLINE float RowSum(int64_t n, F&& term) {
  const F32 d;
  const int64_t lanes = Lanes();
  auto s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    s0 = hn::Add(s0, term(d, i));
    s1 = hn::Add(s1, term(d, i + lanes));
    s2 = hn::Add(s2, term(d, i + 2 * lanes));
    s3 = hn::Add(s3, term(d, i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) s0 = hn::Add(s0, term(d, i));
  float tail = 0;
  for (; i < n; ++i) tail += hn::GetLane(term(F32x1(), i));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)))) + tail;
}

}  // namespace mega::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
