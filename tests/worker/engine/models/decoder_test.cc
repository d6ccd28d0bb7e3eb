#include "worker/engine/models/decoder.h"

#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cross_entropy.h"
#include "tests/worker/engine/harness/reference.h"
#include "tests/worker/engine/harness/tiny.h"

namespace mega::models {
namespace {

using testing::Batch;
using ::testing::ElementsAreArray;
using testing::TinyModel;
using testing::TinySpec;

constexpr int64_t kRows = 4, kPositions = 16;

std::vector<transformer::MicroBatch> Views(const std::vector<Batch>& batches) {
  std::vector<transformer::MicroBatch> views;
  for (const Batch& batch : batches) views.push_back(batch.view());
  return views;
}

std::vector<Batch> RandomBatches(Pool& pool, int64_t count) {
  std::vector<Batch> batches;
  for (int64_t m = 0; m < count; ++m)
    batches.push_back(Batch::Random(pool, kRows, kPositions, TinySpec().vocab_size, 100 + m));
  return batches;
}

TEST(Decoder, FreshModelKnowsNothing) {
  planner::ModelSpec spec = TinySpec();
  spec.init_std = 0.02;
  TinyModel tiny(spec);
  const std::vector<Batch> batches = RandomBatches(tiny.pool, 1);
  const transformer::Loss loss = tiny.Run(Views(batches));
  EXPECT_EQ(loss.tokens, kRows * kPositions);
  EXPECT_NEAR(loss.sum / loss.tokens, std::log(96.0), 0.05);
}

TEST(Decoder, WholeModelGradientIsTheSlope) {
  for (const bool tied : {false, true}) {
    planner::ModelSpec spec = TinySpec();
    spec.tie_embeddings = tied;
    TinyModel tiny(spec);
    const std::vector<Batch> batches = RandomBatches(tiny.pool, 2);
    tiny.model.set_loss_scale(1.0f / (2 * kRows * kPositions));
    tiny.Run(Views(batches));

    // Along each parameter's own gradient g the slope is ‖g‖².
    for (Parameter* parameter : tiny.model.parameters()) {
      const auto grad = parameter->main_grad.flat<const float>();
      const std::vector<float> g(grad.begin(), grad.end());
      const auto value = parameter->value.flat<float>();
      const std::vector<float> saved(value.begin(), value.end());
      double squares = 0;
      for (const float x : g) squares += static_cast<double>(x) * x;
      ASSERT_GT(squares, 0) << parameter->info.name;
      const double step = 1e-2 / std::sqrt(squares);
      const auto loss_at = [&](double t) {
        for (size_t i = 0; i < g.size(); ++i) value[i] = static_cast<float>(saved[i] + t * g[i]);
        tiny.model.BeginStep({.forward_only = true});
        for (const Batch& batch : batches) tiny.model.Forward(0, batch.view(), {});
        return tiny.model.TakeLoss().sum / (2 * kRows * kPositions);
      };
      const double slope = (loss_at(step) - loss_at(-step)) / (2 * step);
      std::copy(saved.begin(), saved.end(), value.begin());
      // The difference of two losses near 5 has about 5e-7 of noise, divided by 2·step.
      EXPECT_NEAR(slope, squares, 5e-3 * squares + 1e-6 / step) << parameter->info.name;
    }
  }
}

TEST(Decoder, GradientsApartAndTogetherHaveTheSameBits) {
  TinyModel tiny;
  const std::vector<Batch> batches = RandomBatches(tiny.pool, 3);
  tiny.Run(Views(batches), /*apart=*/false);
  const std::vector<float> together = tiny.grads.Flat();
  tiny.Run(Views(batches), /*apart=*/true);
  EXPECT_THAT(tiny.grads.Flat(), ElementsAreArray(together));
}

TEST(Decoder, MicroBatchesMayBeInFlightTogether) {
  TinyModel tiny;
  const std::vector<Batch> batches = RandomBatches(tiny.pool, 3);
  tiny.Run(Views(batches));
  const std::vector<float> in_turn = tiny.grads.Flat();

  tiny.grads.Zero(tiny.stream);
  tiny.model.BeginStep({.last_backward = 2});
  for (int m = 0; m < 3; ++m) tiny.model.Forward(m, batches[m].view(), {});
  for (int m = 0; m < 3; ++m) tiny.model.BackwardInput(m, {});
  for (int m = 0; m < 3; ++m) tiny.model.BackwardWeight(m);
  EXPECT_THAT(tiny.grads.Flat(), ElementsAreArray(in_turn));
}

TEST(Decoder, SplittingTheBatchChangesOnlyRounding) {
  TinyModel tiny;
  const Batch whole = Batch::Random(tiny.pool, kRows, kPositions, 96, 1);
  std::vector<transformer::MicroBatch> rows;
  for (int64_t b = 0; b < kRows; ++b)
    rows.push_back({.tokens_BS = whole.view().tokens_BS.Rows(b, 1),
                    .labels_BS = whole.view().labels_BS.Rows(b, 1)});
  tiny.model.set_loss_scale(1.0f / (kRows * kPositions));
  const double loss = tiny.Run({{whole.view()}}).sum;
  const std::vector<float> grads = tiny.grads.Flat();
  EXPECT_NEAR(tiny.Run(rows).sum, loss, 1e-6 * loss);
  EXPECT_LT(testing::Rel(tiny.grads.Flat(), grads), 1e-5);
}

// Two micro-batches with 3 and 13 unmasked tokens give the mean over 16, not the mean of means.
TEST(Decoder, MaskedTokensCountByTokenNotByMicroBatch) {
  TinyModel tiny;
  Batch both = Batch::Random(tiny.pool, 2, kPositions, 96, 1);
  for (int t = 3; t < 16; ++t) both.labels()[t] = kernels::kIgnoredLabel;
  for (int t = 16; t < 19; ++t) both.labels()[t] = kernels::kIgnoredLabel;
  const transformer::MicroBatch first{.tokens_BS = both.view().tokens_BS.Rows(0, 1),
                                      .labels_BS = both.view().labels_BS.Rows(0, 1)};
  const transformer::MicroBatch second{.tokens_BS = both.view().tokens_BS.Rows(1, 1),
                                       .labels_BS = both.view().labels_BS.Rows(1, 1)};
  tiny.model.set_loss_scale(1.0f / 16);
  const transformer::Loss whole = tiny.Run({{both.view()}});
  const std::vector<float> grads = tiny.grads.Flat();
  const transformer::Loss split = tiny.Run({{first, second}});
  EXPECT_EQ(whole.tokens, 16);
  EXPECT_EQ(split.tokens, 16);
  EXPECT_NEAR(split.sum, whole.sum, 1e-6 * whole.sum);
  EXPECT_LT(testing::Rel(tiny.grads.Flat(), grads), 1e-5);
}

TEST(Decoder, FullyMaskedMicroBatchAddsNothing) {
  TinyModel tiny;
  std::vector<Batch> batches = RandomBatches(tiny.pool, 2);
  tiny.Run({{batches[0].view()}});
  const std::vector<float> grads = tiny.grads.Flat();
  std::fill_n(batches[1].labels(), kRows * kPositions, kernels::kIgnoredLabel);
  const transformer::Loss loss = tiny.Run(Views(batches));
  EXPECT_EQ(loss.tokens, kRows * kPositions);
  EXPECT_THAT(tiny.grads.Flat(), ElementsAreArray(grads));
}

TEST(Decoder, EvaluationEqualsForwardAndTouchesNoGradient) {
  TinyModel tiny;
  const std::vector<Batch> batches = RandomBatches(tiny.pool, 2);
  const transformer::Loss trained = tiny.Run(Views(batches));
  const std::vector<float> grads = tiny.grads.Flat();
  const int64_t training_peak = tiny.pool.UsageOf(Purpose::kActivations).peak_bytes;
  tiny.model.BeginStep({.forward_only = true});
  for (int m = 0; m < 2; ++m) tiny.model.Forward(m, batches[m].view(), {});
  EXPECT_EQ(tiny.model.TakeLoss().sum, trained.sum);
  EXPECT_THAT(tiny.grads.Flat(), ElementsAreArray(grads));
  EXPECT_EQ(tiny.pool.UsageOf(Purpose::kActivations).peak_bytes, training_peak);
}

TEST(Decoder, ActivationsReturnToZeroAndMemoryComesFromThePool) {
  TinyModel tiny;
  const std::vector<Batch> batches = RandomBatches(tiny.pool, 3);
  tiny.Run(Views(batches));
  tiny.Run(Views(batches));
  const int64_t allocations = tiny.pool.device_allocations();
  for (int step = 0; step < 3; ++step) {
    tiny.Run(Views(batches));
    EXPECT_EQ(tiny.pool.UsageOf(Purpose::kActivations).bytes, 0);
  }
  EXPECT_EQ(tiny.pool.device_allocations(), allocations);
}

TEST(Decoder, AnAbandonedStepLeavesNothingBehind) {
  TinyModel tiny;
  const std::vector<Batch> batches = RandomBatches(tiny.pool, 2);
  const double loss = tiny.Run(Views(batches)).sum;
  tiny.model.BeginStep({.last_backward = 1});
  tiny.model.Forward(0, batches[0].view(), {});
  EXPECT_GT(tiny.pool.UsageOf(Purpose::kActivations).bytes, 0);
  tiny.model.TakeLoss();
  EXPECT_EQ(tiny.Run(Views(batches)).sum, loss);
}

TEST(Decoder, EveryGradientIsAnnouncedOnceWhenItIsFinal) {
  for (const bool tied : {false, true}) {
    for (const bool apart : {false, true}) {
      planner::ModelSpec spec = TinySpec();
      spec.tie_embeddings = tied;
      TinyModel tiny(spec);
      const std::vector<Batch> batches = RandomBatches(tiny.pool, 2);
      std::vector<std::string> names;
      std::vector<std::vector<float>> announced;
      tiny.model.set_grad_ready_hook([&](const Parameter& parameter) {
        names.push_back(parameter.info.name);
        const auto grad = parameter.main_grad.flat<const float>();
        announced.emplace_back(grad.begin(), grad.end());
      });
      tiny.Run(Views(batches), apart);
      ASSERT_EQ(names.size(), tiny.model.parameters().size());
      for (size_t i = 0; i < names.size(); ++i) {
        const auto grad = tiny.model.Find(names[i])->main_grad.flat<const float>();
        EXPECT_THAT(announced[i], ElementsAreArray(grad.begin(), grad.end())) << names[i];
      }
      EXPECT_EQ(names.back(), "embedding.weight");
    }
  }
}

TEST(Decoder, ReferenceAttentionGivesTheSameModel) {
  planner::ModelSpec spec = TinySpec();
  TinyModel flash(spec);
  spec.reference_attention = true;
  TinyModel reference(spec);
  const std::vector<Batch> batches = RandomBatches(flash.pool, 1);
  const double loss = reference.Run(Views(batches)).sum;
  EXPECT_NEAR(flash.Run(Views(batches)).sum, loss, 1e-6 * loss);
  EXPECT_LT(testing::Rel(flash.grads.Flat(), reference.grads.Flat()), 1e-5);
}

// Initial values by name and global coordinates: a stage draws what the whole model draws.
TEST(Decoder, AStageStartsFromTheWeightsOfTheWhole) {
  TinyModel whole;
  TinyModel second(TinySpec(), 7, {.first_layer = 1, .has_embedding = false});
  EXPECT_EQ(second.model.Find("embedding.weight"), nullptr);
  EXPECT_EQ(second.model.Find("layers.0.mlp.down.weight"), nullptr);
  for (const Parameter* parameter : second.model.parameters()) {
    const auto mine = parameter->value.flat<const float>();
    const auto theirs = whole.model.Find(parameter->info.name)->value.flat<const float>();
    EXPECT_THAT(mine, ElementsAreArray(theirs.begin(), theirs.end())) << parameter->info.name;
  }
}

}  // namespace
}  // namespace mega::models
