#include "kernels/rms_norm.h"

#include <cmath>

#include "gtest/gtest.h"
#include "kernels/rope.h"
#include "tests/kernels/simd_targets.h"
#include "tests/support/gradient_check.h"
#include "tests/support/tolerance.h"

namespace mega::kernels {
namespace {

using testing::HostTensor;

TEST(RmsNorm, EqualsThePlainFormForOddWidthsAndMayAlias) {
  ForEachSimdTarget([] {
    Stream stream({}, 2);
    for (const int64_t T : {0, 1, 5, 300})
      for (const int64_t D : {1, 15, 16, 65, 384}) {
        HostTensor x = HostTensor::Random({T, D}, 1), gamma = HostTensor::Random({D}, 2);
        HostTensor y({T, D}), rstd({T});
        std::vector<double> want;
        for (int64_t t = 0; t < T; ++t) {
          double squares = 0;
          for (int64_t d = 0; d < D; ++d) squares += std::pow(x.f32()[t * D + d], 2);
          for (int64_t d = 0; d < D; ++d)
            want.push_back(x.f32()[t * D + d] / std::sqrt(squares / D + 1e-5) * gamma.f32()[d]);
        }
        RmsNorm(stream, x, gamma, y, rstd, 1e-5f);
        EXPECT_LE(testing::RelativeL2(y.f32(), want), 1e-6) << T << " " << D;
        RmsNorm(stream, x, gamma, x, rstd, 1e-5f);
        EXPECT_EQ(x, y);
      }
  });
}

TEST(RmsNorm, GradientsAgreeWithFiniteDifferences) {
  ForEachSimdTarget([] {
    Stream stream({}, 1);
    for (const bool zero_centered : {false, true})
      for (const int64_t D : {2, 33, 64}) {
        HostTensor x = HostTensor::Random({5, D}, 1), gamma = HostTensor::Random({D}, 2);
        HostTensor dy = HostTensor::Random({5, D}, 3), y({5, D}), rstd({5}), dx({5, D});
        HostTensor dgamma = HostTensor::Zeros({D});
        const auto loss = [&] {
          RmsNorm(stream, x, gamma, y, rstd, 1e-5f, zero_centered);
          return testing::Dot(y, dy);
        };
        loss();
        RmsNormBackwardInput(stream, dy, x, gamma, rstd, dx, false, zero_centered);
        RmsNormBackwardWeight(stream, dy, x, rstd, dgamma);
        EXPECT_LE(testing::GradientError(x, dx, loss), 5e-3);
        EXPECT_LE(testing::GradientError(gamma, dgamma, loss), 1e-3);
      }
  });
}

TEST(RmsNormBackwardInput, AccumulatesOnlyWhenAsked) {
  Stream stream({}, 1);
  HostTensor x = HostTensor::Random({3, 40}, 1), gamma = HostTensor::Random({40}, 2);
  HostTensor dy = HostTensor::Random({3, 40}, 3), y({3, 40}), rstd({3}), alone({3, 40});
  HostTensor added = HostTensor::Random({3, 40}, 4);
  const HostTensor before = added;
  RmsNorm(stream, x, gamma, y, rstd, 1e-5f);
  RmsNormBackwardInput(stream, dy, x, gamma, rstd, alone, false);
  RmsNormBackwardInput(stream, dy, x, gamma, rstd, added, true);
  for (int64_t i = 0; i < added.elements(); ++i)
    ASSERT_FLOAT_EQ(added.f32()[i], before.f32()[i] + alone.f32()[i]);
}

TEST(RmsNormBackwardWeight, GivesTheSameBitsForAnyNumberOfThreads) {
  HostTensor x = HostTensor::Random({700, 390}, 1), dy = HostTensor::Random({700, 390}, 2);
  HostTensor rstd = HostTensor::Random({700}, 3), gamma = HostTensor::Random({390}, 4);
  HostTensor one = HostTensor::Zeros({390}), three = HostTensor::Zeros({390});
  Stream serial({}, 1), team({}, 3);
  RmsNormBackwardWeight(serial, dy, x, rstd, one);
  RmsNormBackwardWeight(team, dy, x, rstd, three);
  EXPECT_LE(testing::RelativeL2(one, three), 1e-6);
  HostTensor again = HostTensor::Zeros({390});
  RmsNormBackwardWeight(team, dy, x, rstd, again);
  EXPECT_EQ(three, again);
}

TEST(Rope, BackwardUndoesForwardAndLengthsStay) {
  ForEachSimdTarget([] {
    Stream stream({}, 2);
    for (const RopeStyle style : {RopeStyle::kHalf, RopeStyle::kInterleaved})
      for (const int64_t half : {1, 3, 8, 16, 33}) {
        const int64_t H = 2 * half + 3;
        HostTensor cos({9, half}), sin({9, half});
        std::vector<int32_t> positions{0, 1, 2, 5, 100, 4000, 7, 8, 9};
        RopeTable(stream, positions, 10000, cos, sin);
        HostTensor rows = HostTensor::Of(std::vector<int32_t>{8, 0, 5, 5});
        HostTensor x = HostTensor::Random({4, 3, H}, 1);
        const HostTensor before = x;
        RopeForward(stream, x, rows, cos, sin, style);
        EXPECT_GT(testing::RelativeL2(x, before), 0.1);
        EXPECT_NEAR(testing::Dot(x, x) / testing::Dot(before, before), 1, 1e-6);
        RopeBackward(stream, x, rows, cos, sin, style);
        EXPECT_LE(testing::RelativeL2(x, before), 1e-6);
      }
  });
}

}  // namespace
}  // namespace mega::kernels
