#include "kernels/cross_entropy.h"

#include <cmath>

#include "gtest/gtest.h"
#include "tests/kernels/simd_targets.h"
#include "tests/support/gradient_check.h"
#include "tests/support/tolerance.h"

namespace mega::kernels {
namespace {

using testing::HostTensor;

HostTensor Labels(int64_t T, int64_t V) {
  std::vector<int32_t> labels;
  for (int64_t t = 0; t < T; ++t)
    labels.push_back(t % 4 == 3 ? kIgnoredLabel : static_cast<int32_t>(t * 7919 % V));
  return HostTensor::Of(labels);
}

TEST(CrossEntropy, EqualsThePlainFormAndTheGradientMayAlias) {
  ForEachSimdTarget([] {
    Stream stream({}, 2);
    for (const int64_t T : {0, 1, 6, 100})
      for (const int64_t V : {1, 2, 17, 256, 1003})
        for (const float size : {1.0f, 300.0f}) {
          HostTensor logits = HostTensor::Random({T, V}, 1, size), labels = Labels(T, V);
          HostTensor loss({T}), lse({T}), dlogits({T, V});
          std::vector<double> losses, gradients;
          for (int64_t t = 0; t < T; ++t) {
            const auto row = std::as_const(logits).f32().subspan(t * V, V);
            const int32_t label = labels.i32()[t];
            double most = row[0], sum = 0;
            for (const float x : row) most = std::max(most, double{x});
            for (const float x : row) sum += std::exp(x - most);
            losses.push_back(label < 0 ? 0 : most + std::log(sum) - row[label]);
            for (int64_t v = 0; v < V; ++v)
              gradients.push_back(
                  label < 0 ? 0 : 0.25 * (std::exp(row[v] - most) / sum - (v == label)));
          }
          CrossEntropyForward(stream, logits, labels, loss, lse);
          CrossEntropyBackward(stream, logits, labels, lse, 0.25f, dlogits);
          EXPECT_LE(testing::RelativeL2(loss.f32(), losses), 1e-6) << T << " " << V;
          for (size_t i = 0; i < gradients.size(); ++i)
            ASSERT_NEAR(dlogits.f32()[i], gradients[i], 2e-7) << T << " " << V;  // of at most 0.25
          CrossEntropyBackward(stream, logits, labels, lse, 0.25f, logits);
          EXPECT_EQ(logits, dlogits);
        }
  });
}

TEST(CrossEntropy, GradientAgreesWithFiniteDifferences) {
  Stream stream({}, 1);
  HostTensor logits = HostTensor::Random({5, 33}, 1), labels = Labels(5, 33);
  HostTensor loss({5}), lse({5}), dlogits({5, 33});
  CrossEntropyForward(stream, logits, labels, loss, lse);
  CrossEntropyBackward(stream, logits, labels, lse, 1, dlogits);
  EXPECT_LE(testing::GradientError(logits, dlogits,
                                   [&] {
                                     CrossEntropyForward(stream, logits, labels, loss, lse);
                                     double sum = 0;
                                     for (const float x : loss.f32()) sum += x;
                                     return sum;
                                   }),
            1e-3);
}

TEST(CrossEntropyDeathTest, LabelOutsideTheVocabularyIsABrokenInvariant) {
  Stream stream({}, 1);
  HostTensor logits = HostTensor::Random({1, 4}, 1), loss({1}), lse({1});
  for (const int32_t label : {4, -1, -101}) {
    HostTensor labels = HostTensor::Of(std::vector<int32_t>{label});
    EXPECT_DEATH(CrossEntropyForward(stream, logits, labels, loss, lse), "MEGA_CHECK");
  }
}

}  // namespace
}  // namespace mega::kernels
