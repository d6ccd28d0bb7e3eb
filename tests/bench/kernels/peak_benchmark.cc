#include "tests/bench/kernels/peak.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "benchmark/benchmark.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/bench/kernels/peak_benchmark.cc"  // NOLINT
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mega::kernels::HWY_NAMESPACE {

// Ten chains: more than latency × FMA units of today's cores, fewer than AVX2's registers.
int64_t FmaLoop(int64_t rounds) {
  const F32 d;
  auto a0 = hn::Set(d, 1.0f), a1 = a0, a2 = a0, a3 = a0, a4 = a0;
  auto a5 = a0, a6 = a0, a7 = a0, a8 = a0, a9 = a0;
  const auto x = hn::Set(d, 0.999f);
  for (int64_t i = 0; i < rounds; ++i) {
    a0 = hn::MulAdd(a0, x, x);
    a1 = hn::MulAdd(a1, x, x);
    a2 = hn::MulAdd(a2, x, x);
    a3 = hn::MulAdd(a3, x, x);
    a4 = hn::MulAdd(a4, x, x);
    a5 = hn::MulAdd(a5, x, x);
    a6 = hn::MulAdd(a6, x, x);
    a7 = hn::MulAdd(a7, x, x);
    a8 = hn::MulAdd(a8, x, x);
    a9 = hn::MulAdd(a9, x, x);
  }
  const auto sum = hn::Add(hn::Add(hn::Add(a0, a1), hn::Add(a2, a3)),
                           hn::Add(hn::Add(a4, a5), hn::Add(hn::Add(a6, a7), hn::Add(a8, a9))));
  float result = hn::GetLane(hn::SumOfLanes(d, sum));
  benchmark::DoNotOptimize(result);
  return rounds * 10 * 2 * Lanes();
}

}  // namespace mega::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mega::kernels {
HWY_EXPORT(FmaLoop);

namespace {

// The best of several short runs: a neighbour on the machine slows most of them down.
template <typename F>
double BestRate(F&& work) {
  double best = 0;
  for (int i = 0; i < 40; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const double amount = work();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = std::max(best, amount / seconds.count());
  }
  return best;
}

}  // namespace

double PeakFlops() {
  static const double peak =
      BestRate([] { return static_cast<double>(HWY_DYNAMIC_DISPATCH(FmaLoop)(100000)); });
  return peak;
}

double PeakCopyBytes() {
  static const double peak = [] {
    constexpr size_t kBytes = 64 << 20;
    std::vector<char> from(kBytes, 1), to(kBytes);
    return BestRate([&] {
      std::memcpy(to.data(), from.data(), kBytes);
      benchmark::ClobberMemory();
      return 2.0 * kBytes;
    });
  }();
  return peak;
}

}  // namespace mega::kernels
#endif
