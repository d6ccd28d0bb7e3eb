#include "tests/kernels/simd_targets.h"

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/simd.h"
#include "kernels/device/device.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/kernels/simd_targets_test.cc"  // NOLINT
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mega::kernels::HWY_NAMESPACE {

void ExpAll(const float* x, float* y, int64_t n) {
  ForEachVector(n, [&](auto d, int64_t i)
                       HWY_ATTR { hn::StoreU(ExpBelow88(d, hn::LoadU(d, x + i)), d, y + i); });
}

}  // namespace mega::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mega::kernels {
HWY_EXPORT(ExpAll);

void ForEachSimdTarget(const std::function<void()>& body) {
  std::vector<int64_t> targets;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) targets.push_back(target);
  for (const int64_t target : targets) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().DeInit();
    SCOPED_TRACE(std::string(SimdTargetName()));
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

namespace {

std::vector<float> ExpOf(std::vector<float> x) {
  std::vector<float> y(x.size());
  HWY_DYNAMIC_DISPATCH(ExpAll)(x.data(), y.data(), static_cast<int64_t>(x.size()));
  return y;
}

TEST(SimdTargets, EachIsReallyUsed) {
  std::set<std::string_view> names;
  int count = 0;
  ForEachSimdTarget([&] {
    names.insert(SimdTargetName());
    ++count;
  });
  EXPECT_EQ(static_cast<int>(names.size()), count);
  EXPECT_TRUE(names.contains("SCALAR"));
  EXPECT_NE(NumericLibraries().find(SimdTargetName()), std::string::npos);
}

TEST(ExpBelow88, IsWithin1Point2e7EverywhereAndExactAtItsEdges) {
  ForEachSimdTarget([] {
    std::vector<float> x;
    for (float v = -87.3f; v < 88; v += 0.00137f) x.push_back(v);
    for (float v = -1; v < 1; v += 0.0000137f) x.push_back(v);
    const std::vector<float> y = ExpOf(x);
    for (size_t i = 0; i < x.size(); ++i) {
      const double want = std::exp(double{x[i]});
      ASSERT_LE(std::abs(y[i] - want) / want, 1.2e-7) << x[i];
    }
    constexpr float kInf = std::numeric_limits<float>::infinity();
    const std::vector<float> edges =
        ExpOf({0, -kInf, -88, -1e30f, std::numeric_limits<float>::quiet_NaN()});
    EXPECT_EQ(edges[0], 1);
    EXPECT_EQ(edges[1], 0);
    EXPECT_EQ(edges[2], 0);
    EXPECT_EQ(edges[3], 0);
    EXPECT_TRUE(std::isnan(edges[4]));
  });
}

}  // namespace
}  // namespace mega::kernels
#endif
