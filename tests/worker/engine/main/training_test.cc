// What a rank computes, as its step reports tell it. Everything of a step is here at once: the
// feed, the scale of the loss, the buckets, the norm, the schedule, the state that a checkpoint
// keeps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "tests/worker/engine/main/scripted_worker.h"
#include "worker/engine/optimizer/lr_schedule.h"

namespace mega::engine {
namespace {

using Steps = std::vector<v1::StepReport>;

// It learns, decays its weights and clips: the gradients of its first steps are far above 0.5.
v1::JobSpec LearningJob(const testing::TempDir& dir) {
  v1::JobSpec spec = TinyJob(dir);
  spec.mutable_training()->set_steps(6);
  spec.mutable_optimizer()->set_lr(0.02);
  spec.mutable_optimizer()->set_min_lr(0.001);
  spec.mutable_optimizer()->set_schedule("cosine");
  spec.mutable_optimizer()->set_warmup_steps(2);
  spec.mutable_optimizer()->set_weight_decay(0.3);
  spec.mutable_optimizer()->set_clip_grad(0.5);
  return spec;
}

Steps Train(const v1::JobSpec& spec, const testing::TempDir& dir) {
  const v1::StartTraining start = StartOf(spec, dir);
  ScriptedWorker worker(dir, start);
  EXPECT_EQ(RunRank(start, worker), absl::OkStatus());
  return worker.steps();
}

// Of rank 0 of two.
Steps TrainOnTwo(v1::JobSpec spec, const testing::TempDir& dir) {
  spec.mutable_parallelism()->set_data_parallel_size(2);
  v1::StartTraining starts[2] = {StartOf(spec, dir), StartOf(spec, dir)};
  starts[1].mutable_rank()->set_rank(1);
  ScriptedWorker zero(dir, starts[0], {.connects = false, .commits = false});
  ScriptedWorker one(dir, starts[1], {.connects = false, .commits = false});
  const auto is_ready = [](const v1::EngineMessage& message) { return message.has_ready(); };
  {
    std::jthread first([&] { EXPECT_EQ(RunRank(starts[0], zero), absl::OkStatus()); });
    std::jthread second([&] { EXPECT_EQ(RunRank(starts[1], one), absl::OkStatus()); });
    v1::TrainerMessage connect;
    for (int64_t rank = 0; rank < 2; ++rank) {
      v1::RankAddress& address = *connect.mutable_connect()->add_addresses();
      address.set_rank(rank);
      address.set_address((rank == 0 ? zero : one).WaitFor(is_ready).ready().address());
    }
    zero.Send(connect);
    one.Send(connect);
  }
  return zero.steps();
}

// Sums come in another order; nothing else may differ.
void ExpectSameTraining(const Steps& one, const Steps& other, const std::string& what) {
  ASSERT_EQ(one.size(), other.size()) << what;
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_NEAR(one[i].loss(), other[i].loss(), 1e-4 * one[i].loss()) << what << ", step " << i + 1;
    EXPECT_NEAR(one[i].grad_norm(), other[i].grad_norm(), 1e-3 * one[i].grad_norm())
        << what << ", step " << i + 1;
  }
}

TEST(Training, IsTheSameHoweverABatchIsSplit) {
  testing::TempDir dir;
  v1::JobSpec spec = LearningJob(dir);
  spec.mutable_training()->set_global_batch_size(5);  // the last row of the last one is absent
  spec.mutable_training()->set_micro_batch_size(1);
  const Steps whole = Train(spec, dir);
  ASSERT_EQ(whole.size(), 6u);
  EXPECT_GT(whole[0].grad_norm(), 0.5);               // it is clipped
  EXPECT_LT(whole[5].loss(), whole[0].loss() - 0.1);  // it learns
  for (const int64_t micro_batch : {2, 5}) {
    spec.mutable_training()->set_micro_batch_size(micro_batch);
    ExpectSameTraining(whole, Train(spec, dir), fmt::format("micro-batches of {}", micro_batch));
  }
  spec.mutable_training()->set_micro_batch_size(1);
  spec.mutable_checkpoint()->set_save_on_exit(false);
  ExpectSameTraining(whole, TrainOnTwo(spec, dir), "two ranks");
}

// Samples that are all alike have one gradient, and it is the mean's, however many there are.
TEST(Training, TheGradientIsThatOfTheMeanOverTheTokens) {
  testing::TempDir dir;
  v1::JobSpec spec = LearningJob(dir);
  testing::WriteFile(dir / "text.txt", std::string(20'000, 'x'));
  spec.mutable_optimizer()->set_warmup_steps(0);
  spec.mutable_training()->set_steps(1);
  spec.mutable_training()->set_global_batch_size(1);
  const Steps one = Train(spec, dir);
  spec.mutable_training()->set_global_batch_size(6);
  spec.mutable_training()->set_micro_batch_size(2);
  ExpectSameTraining(one, Train(spec, dir), "six samples");
}

TEST(Training, AStepTakesTheRateOfItsOwnNumber) {
  testing::TempDir dir;
  const v1::JobSpec spec = LearningJob(dir);
  const v1::StartTraining start = StartOf(spec, dir);
  const auto schedule = optimizer::LrSchedule::Make(start.spec().optimizer(), 6);
  ASSERT_TRUE(schedule.ok());
  const Steps steps = Train(spec, dir);
  ASSERT_EQ(steps.size(), 6u);
  EXPECT_EQ(steps[0].lr(), 0.01);  // half of the way up
  EXPECT_EQ(steps[1].lr(), 0.02);
  EXPECT_DOUBLE_EQ(steps[5].lr(), 0.001);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(steps[i].step(), static_cast<int64_t>(i) + 1);
    EXPECT_EQ(steps[i].lr(), schedule->At(steps[i].step()));
  }
}

// Weights, moments, place in the data and in the schedule are the checkpoint's; nothing else
// matters.
TEST(Training, ARestoredRankGoesOnBitForBit) {
  testing::TempDir dir;
  v1::JobSpec spec = LearningJob(dir);
  spec.mutable_checkpoint()->set_interval_steps(3);
  spec.mutable_data()->set_order("shuffled");
  v1::StartTraining start = StartOf(spec, dir);
  Steps whole;
  {
    ScriptedWorker worker(dir, start);
    ASSERT_EQ(RunRank(start, worker), absl::OkStatus());
    whole = worker.steps();
    *start.mutable_load() = worker.committed().at(0);
  }
  ASSERT_EQ(start.load().step(), 3);
  start.mutable_rank()->set_attempt(2);
  ScriptedWorker worker(dir, start);
  ASSERT_EQ(RunRank(start, worker), absl::OkStatus());
  const Steps rest = worker.steps();
  ASSERT_EQ(rest.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const v1::StepReport& before = whole.at(3 + i);
    EXPECT_EQ(rest[i].step(), before.step());
    EXPECT_EQ(rest[i].loss(), before.loss());
    EXPECT_EQ(rest[i].grad_norm(), before.grad_norm());
    EXPECT_EQ(rest[i].lr(), before.lr());
    EXPECT_EQ(rest[i].consumed_tokens(), before.consumed_tokens());
  }
}

// The validation loss is the mean over all of its samples: of two steps as of two halves.
TEST(Training, EvaluationReadsEachOfItsSamplesOnce) {
  testing::TempDir dir;
  v1::JobSpec spec = TinyJob(dir);
  spec.mutable_training()->set_steps(1);
  spec.mutable_training()->set_eval_steps(2);
  const double two_of_four = Train(spec, dir).back().validation_loss();
  spec.mutable_training()->set_global_batch_size(8);
  spec.mutable_training()->set_eval_steps(1);
  const double one_of_eight = Train(spec, dir).back().validation_loss();
  EXPECT_NEAR(two_of_four, one_of_eight, 1e-5 * one_of_eight);
  spec.mutable_training()->set_global_batch_size(4);
  const double one_of_four = Train(spec, dir).back().validation_loss();
  EXPECT_GT(std::abs(one_of_four - one_of_eight), 1e-4);  // the samples do differ
}

}  // namespace
}  // namespace mega::engine
