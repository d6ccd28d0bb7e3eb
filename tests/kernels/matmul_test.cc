#include "kernels/matmul.h"

#include <array>
#include <limits>

#include "gtest/gtest.h"
#include "kernels/embedding.h"
#include "tests/kernels/oracle.h"
#include "tests/support/gradient_check.h"
#include "tests/support/tolerance.h"

namespace mega::kernels {
namespace {

using testing::HostTensor;
using testing::RelativeL2;

TEST(Matmul, EqualsThePlainProductForOddShapesAndEveryTranspose) {
  Stream stream({}, 1);
  for (const auto& [M, N, K] : std::vector<std::array<int64_t, 3>>{
           {1, 1, 1}, {3, 5, 7}, {17, 1, 33}, {1, 65, 2}, {64, 64, 64}, {130, 31, 67}}) {
    for (const bool ta : {false, true})
      for (const bool tb : {false, true}) {
        const HostTensor a = HostTensor::Random(ta ? Shape{K, M} : Shape{M, K}, 1);
        const HostTensor b = HostTensor::Random(tb ? Shape{N, K} : Shape{K, N}, 2);
        const std::vector<double> want = PlainMatmul(a, ta, b, tb, M, N, K);
        HostTensor c({M, N}), a_copy = a, b_copy = b;
        for (float& x : c.f32()) x = std::numeric_limits<float>::quiet_NaN();  // never read
        Matmul(stream, a_copy, ta, b_copy, tb, c, 0);
        EXPECT_LE(RelativeL2(c.f32(), want), testing::kF32Tolerance) << M << " " << N << " " << K;
        Matmul(stream, a_copy, ta, b_copy, tb, c, 1);
        for (float& x : c.f32()) x /= 2;
        EXPECT_LE(RelativeL2(c.f32(), want), testing::kF32Tolerance) << M << " " << N << " " << K;
      }
  }
}

TEST(Matmul, EmptyRowsAndEmptySumsAreFine) {
  Stream stream({}, 1);
  HostTensor none({0, 4}), b({4, 3}), c({0, 3});
  Matmul(stream, none, false, b, false, c, 0);
  HostTensor a({2, 0}), e({0, 3}), zero({2, 3});
  Matmul(stream, a, false, e, false, zero, 0);
  for (const float x : zero.f32()) EXPECT_EQ(x, 0);
}

TEST(Matmul, GivesTheSameBitsTwice) {
  Stream stream({}, 2);
  HostTensor x = HostTensor::Random({300, 130}, 1), w = HostTensor::Random({70, 130}, 2);
  HostTensor first({300, 70}), second({300, 70});
  LinearForward(stream, x, w, first);
  LinearForward(stream, x, w, second);
  EXPECT_EQ(first, second);
}

TEST(Linear, GradientsAgreeWithFiniteDifferences) {
  Stream stream({}, 1);
  HostTensor x = HostTensor::Random({9, 11}, 1), w = HostTensor::Random({7, 11}, 2);
  HostTensor dy = HostTensor::Random({9, 7}, 3), y({9, 7});
  HostTensor dx({9, 11}), dw = HostTensor::Zeros({7, 11});
  const auto loss = [&] {
    LinearForward(stream, x, w, y);
    return testing::Dot(y, dy);
  };
  LinearBackwardInput(stream, dy, w, dx);
  LinearBackwardWeight(stream, dy, x, dw);
  EXPECT_LE(testing::GradientError(x, dx, loss), 1e-3);
  EXPECT_LE(testing::GradientError(w, dw, loss), 1e-3);
}

TEST(Linear, WeightGradientAddsToWhatIsThere) {
  Stream stream({}, 1);
  HostTensor x = HostTensor::Random({5, 3}, 1), dy = HostTensor::Random({5, 2}, 2);
  HostTensor once = HostTensor::Zeros({2, 3}), twice = HostTensor::Zeros({2, 3});
  LinearBackwardWeight(stream, dy, x, once);
  LinearBackwardWeight(stream, dy, x, twice);
  LinearBackwardWeight(stream, dy, x, twice);
  for (int i = 0; i < 6; ++i) EXPECT_FLOAT_EQ(twice.f32()[i], 2 * once.f32()[i]);
}

TEST(AddBiasBackward, SumsRowsAndAddsAtAnyHeight) {
  for (const int threads : {1, 2}) {
    Stream stream({}, threads);
    for (const int64_t T : {0, 1, 255, 256, 257, 1000})
      for (const int64_t O : {1, 15, 64, 67, 200}) {
        HostTensor dy = HostTensor::Random({T, O}, 1), dbias = HostTensor::Zeros({O});
        std::vector<double> want(O, 1.0);
        for (int64_t t = 0; t < T; ++t)
          for (int64_t o = 0; o < O; ++o) want[o] += dy.f32()[t * O + o];
        for (float& x : dbias.f32()) x = 1;
        AddBiasBackward(stream, dy, dbias);
        EXPECT_LE(RelativeL2(dbias.f32(), want), testing::kF32Tolerance) << T << " " << O;
      }
  }
}

TEST(EmbeddingBackward, GivesTheSameBitsForAnyNumberOfThreads) {
  HostTensor ids = HostTensor::Of(std::vector<int32_t>{3, 0, 3, 3, 1, 0, 2, 3});
  HostTensor dy = HostTensor::Random({8, 300}, 1);
  HostTensor one = HostTensor::Zeros({4, 300}), three = HostTensor::Zeros({4, 300});
  Stream serial({}, 1), team({}, 3);
  EmbeddingBackward(serial, ids, dy, one);
  EmbeddingBackward(team, ids, dy, three);
  EXPECT_EQ(one, three);
}

TEST(EmbeddingDeathTest, IdOutsideTheTableIsABrokenInvariant) {
  Stream stream({}, 1);
  HostTensor table = HostTensor::Random({4, 2}, 1), y({1, 2});
  for (const int32_t id : {-1, 4}) {
    HostTensor ids = HostTensor::Of(std::vector<int32_t>{id});
    EXPECT_DEATH(EmbeddingForward(stream, ids, table, y), "MEGA_CHECK");
  }
}

TEST(LinearDeathTest, ShapesAreCheckedAtTheEdge) {
  Stream stream({}, 1);
  HostTensor x({2, 3}), w({5, 4}), y({2, 5});
  EXPECT_DEATH(LinearForward(stream, x, w, y), "\\[5, 4\\] where \\[5, 3\\]");
}

}  // namespace
}  // namespace mega::kernels
