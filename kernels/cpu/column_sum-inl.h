// Sums over rows, column by column: the shape of every gradient of a [D] parameter. Compiled once
// per target (no include guard across targets).
#if defined(MEGA_KERNELS_CPU_COLUMN_SUM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MEGA_KERNELS_CPU_COLUMN_SUM_INL_H_
#undef MEGA_KERNELS_CPU_COLUMN_SUM_INL_H_
#else
#define MEGA_KERNELS_CPU_COLUMN_SUM_INL_H_
#endif

#include <algorithm>

#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mega::kernels::HWY_NAMESPACE {

// out[d] += sum of term(tag, t, d) over t in [0, T), for d in [begin, end). A column's sum is
// cut into runs of 256 rows, which keeps the rounding error of long batches down, and does not
// depend on begin and end.
template <typename F>
HWY_INLINE void ColumnSum(int64_t T, int64_t begin, int64_t end, float* out, F&& term) {
  constexpr int64_t kRun = 256;
  const F32 d;
  const int64_t lanes = Lanes();
  for (int64_t t0 = 0; t0 < T; t0 += kRun) {
    const int64_t t1 = std::min(T, t0 + kRun);
    int64_t c = begin;
    for (; c + 4 * lanes <= end; c += 4 * lanes) {
      auto s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
      for (int64_t t = t0; t < t1; ++t) {
        s0 = hn::Add(s0, term(d, t, c));
        s1 = hn::Add(s1, term(d, t, c + lanes));
        s2 = hn::Add(s2, term(d, t, c + 2 * lanes));
        s3 = hn::Add(s3, term(d, t, c + 3 * lanes));
      }
      hn::StoreU(hn::Add(hn::LoadU(d, out + c), s0), d, out + c);
      hn::StoreU(hn::Add(hn::LoadU(d, out + c + lanes), s1), d, out + c + lanes);
      hn::StoreU(hn::Add(hn::LoadU(d, out + c + 2 * lanes), s2), d, out + c + 2 * lanes);
      hn::StoreU(hn::Add(hn::LoadU(d, out + c + 3 * lanes), s3), d, out + c + 3 * lanes);
    }
    ForEachVector(end - c, [&](auto tag, int64_t i) HWY_ATTR {
      auto s = hn::Zero(tag);
      for (int64_t t = t0; t < t1; ++t) s = hn::Add(s, term(tag, t, c + i));
      hn::StoreU(hn::Add(hn::LoadU(tag, out + c + i), s), tag, out + c + i);
    });
  }
}

}  // namespace mega::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
