#include "kernels/elementwise.h"

#include <cmath>

#include "gtest/gtest.h"
#include "kernels/activation.h"
#include "kernels/adamw.h"
#include "tests/kernels/oracle.h"
#include "tests/kernels/simd_targets.h"
#include "tests/support/gradient_check.h"
#include "tests/support/tolerance.h"

namespace mega::kernels {
namespace {

using testing::HostTensor;
using testing::RelativeL2;

constexpr int64_t kSizes[] = {0, 1, 3, 15, 16, 17, 100, 16384, 16385, 70001};

TEST(SumOfSquares, GivesTheSameBitsForOneTwoAndThreeThreads) {
  ForEachSimdTarget([] {
    for (const int64_t n : kSizes) {
      HostTensor x = HostTensor::Random({n}, 1);
      double want = 0, plain = 0;
      for (const float v : x.f32()) want += double{v} * double{v}, plain += v;
      Stream one({}, 1), two({}, 2), three({}, 3);
      const double sum = SumOfSquares(one, x);
      EXPECT_NEAR(sum, want, 1e-12 * want);
      EXPECT_NEAR(Sum(one, x), plain, 1e-9 * (1 + want));
      EXPECT_EQ(sum, SumOfSquares(two, x));
      EXPECT_EQ(sum, SumOfSquares(three, x));
      EXPECT_EQ(Sum(one, x), Sum(three, x));
    }
  });
}

TEST(Elementwise, AddScaleFillAndCopyDoWhatTheirNamesSay) {
  ForEachSimdTarget([] {
    Stream stream({}, 2);
    for (const int64_t n : kSizes) {
      HostTensor a = HostTensor::Random({n}, 1), b = HostTensor::Random({n}, 2);
      HostTensor sum({n}), copy({n}), in_place = b, scaled = a, filled({n});
      Add(stream, a, b, sum);
      AddInPlace(stream, a, in_place);
      Scale(stream, scaled, 3);
      Fill(stream, filled, 2.5f);
      Copy(stream, a, copy);
      EXPECT_EQ(copy, a);
      EXPECT_EQ(in_place, sum);
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(sum.f32()[i], a.f32()[i] + b.f32()[i]);
        ASSERT_EQ(scaled.f32()[i], 3 * a.f32()[i]);
        ASSERT_EQ(filled.f32()[i], 2.5f);
      }
    }
  });
}

TEST(CopyColumns, InUndoesOut) {
  Stream stream({}, 2);
  HostTensor whole = HostTensor::Random({7, 10}, 1), again({7, 10});
  HostTensor left({7, 3}), right({7, 7}), none({7, 0});
  CopyColumnsOut(stream, whole, 0, left);
  CopyColumnsOut(stream, whole, 3, right);
  CopyColumnsOut(stream, whole, 10, none);
  EXPECT_EQ(right.f32()[7], whole.f32()[13]);
  CopyColumnsIn(stream, left, again, 0);
  CopyColumnsIn(stream, right, again, 3);
  EXPECT_EQ(again, whole);
}

TEST(CopyColumnsDeathTest, PartMustLieInside) {
  Stream stream({}, 1);
  HostTensor whole({2, 4}), part({2, 3});
  EXPECT_DEATH(CopyColumnsOut(stream, whole, 2, part), "MEGA_CHECK");
}

TEST(Silu, EqualsThePlainFormAndStaysFiniteAtLargeInputs) {
  ForEachSimdTarget([] {
    Stream stream({}, 1);
    for (const int64_t n : kSizes) {
      HostTensor x = HostTensor::Random({n}, 1, 5), y({n});
      if (n > 2) x.f32()[0] = 1e30f, x.f32()[1] = -1e30f;
      Silu(stream, x, y);
      std::vector<double> want;
      for (const float v : x.f32()) want.push_back(v < -1e4 ? 0 : v * PlainSigmoid(v));
      EXPECT_LE(RelativeL2(y.f32(), want), 1e-6) << n;
      Silu(stream, x, x);  // may alias
      EXPECT_EQ(x, y);
    }
  });
}

TEST(SwiGlu, GradientAgreesWithFiniteDifferencesAndMayAlias) {
  ForEachSimdTarget([] {
    Stream stream({}, 1);
    for (const int64_t F : {1, 7, 16, 37}) {
      HostTensor x = HostTensor::Random({5, 2 * F}, 1), dy = HostTensor::Random({5, F}, 2);
      HostTensor y({5, F}), dx({5, 2 * F});
      SwiGluBackward(stream, dy, x, dx);
      EXPECT_LE(testing::GradientError(x, dx,
                                       [&] {
                                         SwiGlu(stream, x, y);
                                         return testing::Dot(y, dy);
                                       }),
                2e-3);
      SwiGluBackward(stream, dy, x, x);
      EXPECT_EQ(x, dx);
    }
  });
}

TEST(AdamW, FollowsThePlainFormAndDoesNotDependOnWhereASliceBegins) {
  ForEachSimdTarget([] {
    Stream stream({}, 2);
    for (const int64_t n : kSizes) {
      HostTensor p = HostTensor::Random({n}, 1), g = HostTensor::Random({n}, 2);
      HostTensor m = HostTensor::Random({n}, 3, 0.1f), v = HostTensor::Random({n}, 4, 0.1f);
      for (float& x : v.f32()) x = std::abs(x);
      const AdamWOptions o{.lr = 1e-2, .weight_decay = 0.1, .grad_scale = 0.5, .step = 3};
      std::vector<double> want;
      for (int64_t i = 0; i < n; ++i) {
        const double grad = 0.5 * g.f32()[i];
        const double m1 = 0.9 * m.f32()[i] + 0.1 * grad;
        const double v1 = 0.95 * v.f32()[i] + 0.05 * grad * grad;
        want.push_back(p.f32()[i] * (1 - 1e-3) -
                       1e-2 * (m1 / (1 - std::pow(0.9, 3))) /
                           (std::sqrt(v1 / (1 - std::pow(0.95, 3))) + 1e-8));
      }
      HostTensor p2 = p, m2 = m, v2 = v;
      AdamW(stream, o, p, g, m, v);
      EXPECT_LE(RelativeL2(p.f32(), want), 1e-6) << n;
      // A data-parallel rank updates its slice only: the bits must not know.
      for (int64_t begin = 0; begin < n;) {
        const int64_t count = std::min<int64_t>(n - begin, begin == 0 ? 1 : 5003);
        AdamW(stream, o, p2.view().Rows(begin, count), g.view().Rows(begin, count),
              m2.view().Rows(begin, count), v2.view().Rows(begin, count));
        begin += count;
      }
      EXPECT_EQ(p, p2);
      EXPECT_EQ(m, m2);
      EXPECT_EQ(v, v2);
    }
  });
}

}  // namespace
}  // namespace mega::kernels
