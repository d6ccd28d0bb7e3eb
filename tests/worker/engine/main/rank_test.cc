#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "coordinator/planner/memory_budget.h"
#include "coordinator/planner/model/model_spec.h"
#include "tests/worker/engine/main/scripted_worker.h"
#include "worker/engine/checkpoint/writer.h"
#include "worker/engine/main/leave_within.h"
#include "worker/engine/models/decoder.h"

namespace mega::engine {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<double> LossesOf(const std::vector<v1::StepReport>& steps) {
  std::vector<double> losses;
  for (const v1::StepReport& step : steps) losses.push_back(step.loss());
  return losses;
}

TEST(Rank, ResumeWithAnotherBatchSizeGoesOnWithTheNextSample) {
  testing::TempDir dir;
  v1::JobSpec spec = TinyJob(dir);
  spec.mutable_training()->set_steps(8);
  spec.mutable_checkpoint()->set_interval_steps(4);
  const v1::StartTraining whole = StartOf(spec, dir);
  std::vector<double> losses;
  v1::Manifest after_four;
  {
    ScriptedWorker worker(dir, whole);
    ASSERT_TRUE(RunRank(whole, worker).ok());
    losses = LossesOf(worker.steps());
    ASSERT_EQ(losses.size(), 8);
    after_four = worker.committed().at(0);
    ASSERT_EQ(after_four.state().consumed_samples(), 16);
  }
  // The weights stand still, so a step of 8 samples has the mean loss of two steps of 4.
  spec.mutable_training()->set_global_batch_size(8);
  spec.mutable_training()->set_steps(5);
  spec.mutable_checkpoint()->set_load(after_four.directory());
  const v1::StartTraining larger = StartOf(spec, dir);
  ScriptedWorker worker(dir, larger);
  ASSERT_TRUE(RunRank(larger, worker).ok());
  ASSERT_EQ(worker.steps().size(), 1);
  EXPECT_NEAR(worker.steps()[0].loss(), (losses[4] + losses[5]) / 2, 1e-5);
  EXPECT_EQ(worker.committed().at(0).state().consumed_samples(), 24);
  EXPECT_GT(std::abs(losses[4] - losses[0]), 1e-3);  // the losses do tell samples apart
}

std::string JobFolder(const testing::TempDir& dir) { return dir / "checkpoints/tiny-01234567"; }

// A file where the folder of a step must be: that step cannot be saved.
void Obstruct(const testing::TempDir& dir, int64_t step) {
  std::filesystem::create_directories(JobFolder(dir));
  testing::WriteFile(checkpoint::StepFolder(JobFolder(dir), step), "");
}

std::vector<int64_t> FailedSteps(const ScriptedWorker& worker) {
  std::vector<int64_t> steps;
  for (const v1::EngineMessage& message : worker.heard())
    if (message.has_checkpoint_failed()) steps.push_back(message.checkpoint_failed().step());
  return steps;
}

std::vector<int64_t> CommittedSteps(const ScriptedWorker& worker) {
  std::vector<int64_t> steps;
  for (const v1::Manifest& manifest : worker.committed()) steps.push_back(manifest.step());
  return steps;
}

TEST(Rank, AFailedSaveOnTheWayIsReportedAndTrainingGoesOn) {
  testing::TempDir dir;
  v1::JobSpec spec = TinyJob(dir);
  spec.mutable_checkpoint()->set_interval_steps(2);
  Obstruct(dir, 2);
  const v1::StartTraining start = StartOf(spec, dir);
  ScriptedWorker worker(dir, start);
  EXPECT_EQ(RunRank(start, worker), absl::OkStatus());
  EXPECT_THAT(FailedSteps(worker), ElementsAre(2));
  EXPECT_THAT(CommittedSteps(worker), ElementsAre(4));
  EXPECT_TRUE(
      std::filesystem::exists(checkpoint::StepFolder(JobFolder(dir), 4) + "/manifest.json"));
}

// Case: the disk was full, the job succeeded, and the trained weights were nowhere.
TEST(Rank, AFailedLastSaveIsAnErrorThatNamesStepAndCause) {
  testing::TempDir dir;
  Obstruct(dir, 4);
  const v1::StartTraining start = StartOf(TinyJob(dir), dir);
  ScriptedWorker worker(dir, start);
  const absl::Status status = RunRank(start, worker);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("the checkpoint of step 4"), HasSubstr("is not a folder")));
  EXPECT_THAT(FailedSteps(worker), ElementsAre(4));
}

// Case: the rank waited a minute for the commit of a checkpoint that had been refused, and
// succeeded.
TEST(Rank, ALastSaveThatIsRejectedIsAnErrorAtOnce) {
  testing::TempDir dir;
  const v1::StartTraining start = StartOf(TinyJob(dir), dir);
  ScriptedWorker worker(dir, start, {.rejects = 4});
  const auto begin = std::chrono::steady_clock::now();
  const absl::Status status = RunRank(start, worker);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(50));
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);  // kExitBadInput
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("the checkpoint of step 4"), HasSubstr("a hole in w")));
  EXPECT_FALSE(std::filesystem::exists(checkpoint::StepFolder(JobFolder(dir), 4)));
}

TEST(Rank, ASaveOnTheWayThatIsRejectedCountsAsFailed) {
  testing::TempDir dir;
  v1::JobSpec spec = TinyJob(dir);
  spec.mutable_checkpoint()->set_interval_steps(2);
  const v1::StartTraining start = StartOf(spec, dir);
  ScriptedWorker worker(dir, start, {.rejects = 2});
  EXPECT_EQ(RunRank(start, worker), absl::OkStatus());
  EXPECT_THAT(CommittedSteps(worker), ElementsAre(4));
  EXPECT_FALSE(std::filesystem::exists(checkpoint::StepFolder(JobFolder(dir), 2)));
}

// Case: shards of saves that a crash had cut off stayed on a full disk.
TEST(Rank, WhatAnEarlierAttemptLeftOfAnUncommittedSaveGoesBeforeTheFirstStep) {
  testing::TempDir dir;
  v1::JobSpec spec = TinyJob(dir);
  spec.mutable_checkpoint()->set_interval_steps(2);
  v1::StartTraining start = StartOf(spec, dir);
  {
    ScriptedWorker worker(dir, start);
    ASSERT_EQ(RunRank(start, worker), absl::OkStatus());
    *start.mutable_load() = worker.committed().at(0);
  }
  ASSERT_EQ(start.load().step(), 2);
  const std::string crashed = checkpoint::StepFolder(JobFolder(dir), 3);
  std::filesystem::create_directories(crashed);
  testing::WriteFile(crashed + "/a1-r00000.safetensors", "whole, but of no checkpoint");
  testing::WriteFile(crashed + "/a1-r00001.safetensors.tmp", "cut o");
  start.mutable_rank()->set_attempt(2);
  ScriptedWorker worker(dir, start);
  ASSERT_EQ(RunRank(start, worker), absl::OkStatus());
  EXPECT_FALSE(std::filesystem::exists(crashed));
  EXPECT_TRUE(
      std::filesystem::exists(checkpoint::StepFolder(JobFolder(dir), 2) + "/manifest.json"));
}

TEST(Rank, AFolderThatCannotBeMadeIsRefusedBeforeTheFirstStep) {
  testing::TempDir dir;
  testing::WriteFile(dir / "file", "");
  v1::JobSpec spec = TinyJob(dir);
  spec.mutable_checkpoint()->set_directory(dir / "file/checkpoints");
  const v1::StartTraining start = StartOf(spec, dir);
  ScriptedWorker worker(dir, start);
  const absl::Status status = RunRank(start, worker);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("checkpoint.directory"), HasSubstr("file/checkpoints")));
  EXPECT_TRUE(worker.steps().empty());
}

TEST(Rank, WithoutSaveOnExitTheLastStepIsSavedWhenItsTurnHasComeAndMayFail) {
  testing::TempDir dir;
  v1::JobSpec spec = TinyJob(dir);
  spec.mutable_checkpoint()->set_save_on_exit(false);
  spec.mutable_checkpoint()->set_interval_steps(2);
  const v1::StartTraining start = StartOf(spec, dir);
  {
    ScriptedWorker worker(dir, start);
    EXPECT_EQ(RunRank(start, worker), absl::OkStatus());
    EXPECT_THAT(CommittedSteps(worker), ElementsAre(2, 4));
  }
  std::filesystem::remove_all(JobFolder(dir));
  Obstruct(dir, 4);
  ScriptedWorker worker(dir, start);
  EXPECT_EQ(RunRank(start, worker), absl::OkStatus());
  EXPECT_THAT(CommittedSteps(worker), ElementsAre(2));
}

// Case: a text of a few pages died for want of a validation split that nobody had asked for.
TEST(Rank, EvaluationNobodyAskedForIsLeftOutWhereTheTextIsTooShort) {
  testing::TempDir dir;
  v1::JobSpec spec = TinyJob(dir);
  testing::WriteFile(dir / "text.txt", std::string(300, 'x'));  // 15 tokens to validate on
  spec.mutable_training()->clear_eval_steps();
  v1::StartTraining start = StartOf(spec, dir);
  {
    ScriptedWorker worker(dir, start);
    EXPECT_EQ(RunRank(start, worker), absl::OkStatus());
    EXPECT_FALSE(worker.steps().back().has_validation_loss());
  }
  spec.mutable_training()->set_eval_steps(1);
  start = StartOf(spec, dir);
  ScriptedWorker worker(dir, start);
  const absl::Status status = RunRank(start, worker);
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the validation split has 15 of 300"));
}

TEST(Rank, ItsMemoryIsWhatThePlanSays) {
  testing::TempDir dir;
  v1::JobSpec spec = TinyJob(dir);
  spec.mutable_model()->set_num_layers(4);
  spec.mutable_model()->set_hidden_size(64);
  spec.mutable_model()->set_ffn_hidden_size(192);
  spec.mutable_model()->set_num_attention_heads(4);
  spec.mutable_data()->set_seq_length(64);
  spec.mutable_training()->set_global_batch_size(8);
  spec.mutable_training()->set_micro_batch_size(4);
  const v1::StartTraining start = StartOf(spec, dir);
  ScriptedWorker worker(dir, start);
  ASSERT_EQ(RunRank(start, worker), absl::OkStatus());
  const auto planned = static_cast<double>(planner::TotalBytes(start.plan().memory()));
  const auto used = static_cast<double>(worker.steps().back().memory_bytes());
  EXPECT_NEAR(used / planned, 1, 0.1) << used << " of " << planned;
}

// Case: the rank aborted, and the user saw a stack instead of what did not fit.
TEST(Rank, WeightsThatDoNotFitAreAnErrorThatSaysSo) {
  testing::TempDir dir;
  auto model = planner::MakeModelSpec(StartOf(TinyJob(dir), dir).spec());
  ASSERT_TRUE(model.ok());
  model->ffn_hidden_size = int64_t{1} << 50;
  Pool pool{Device{}};
  Stream stream{Device{}, 1};
  const absl::Status status = models::Decoder::Make(*model, {}, pool, stream).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("the weights"), HasSubstr("bytes"), HasSubstr("are free")));
}

// Case: another node still builds its dataset when a minute is over.
TEST(Rank, WaitsForItsPeersUntilTheWorkerSaysStopAndReportsMeanwhile) {
  testing::TempDir dir;
  const v1::StartTraining start = StartOf(TinyJob(dir), dir);
  ScriptedWorker worker(dir, start, {.connects = false});
  std::jthread stops([&worker] {
    worker.WaitFor([](const v1::EngineMessage& message) {
      return message.has_progress() && message.progress().phase() == "connecting";
    });
    v1::TrainerMessage stop;
    stop.mutable_stop()->set_reason("enough");
    worker.Send(stop);
  });
  EXPECT_EQ(RunRank(start, worker).code(), absl::StatusCode::kCancelled);
}

// Sends `order` when the rank has reported its first step.
std::jthread AfterTheFirstStep(ScriptedWorker& worker, v1::TrainerMessage order) {
  return std::jthread([&worker, order] {
    worker.WaitFor([](const v1::EngineMessage& message) { return message.has_step(); });
    worker.Send(order);
  });
}

TEST(Rank, SavesAfterTheStepUnderWayWhenItIsAsked) {
  testing::TempDir dir;
  v1::JobSpec spec = TinyJob(dir);
  spec.mutable_training()->set_steps(2000);
  spec.mutable_checkpoint()->set_interval_steps(0);
  const v1::StartTraining start = StartOf(spec, dir);
  ScriptedWorker worker(dir, start);
  v1::TrainerMessage save;
  save.mutable_save()->set_cause("the job is paused");
  const std::jthread asks = AfterTheFirstStep(worker, save);
  ASSERT_EQ(RunRank(start, worker), absl::OkStatus());
  const std::vector<v1::Manifest> committed = worker.committed();
  ASSERT_EQ(committed.size(), 2);
  EXPECT_GT(committed[0].step(), 1);
  EXPECT_LT(committed[0].step(), 2000);
  EXPECT_EQ(committed[0].state().consumed_samples(), 4 * committed[0].step());
  EXPECT_EQ(committed[1].step(), 2000);
}

TEST(Rank, AStopEndsTheWaitForTheLastCommit) {
  testing::TempDir dir;
  const v1::StartTraining start = StartOf(TinyJob(dir), dir);
  ScriptedWorker worker(dir, start, {.commits = false});
  std::jthread stops([&worker] {
    worker.WaitFor([](const v1::EngineMessage& message) { return message.has_checkpoint_part(); });
    v1::TrainerMessage stop;
    stop.mutable_stop()->set_reason("enough");
    worker.Send(stop);
  });
  EXPECT_EQ(RunRank(start, worker).code(), absl::StatusCode::kCancelled);
}

TEST(LeaveWithin, EndsAProcessThatDoesNotEnd) {
  EXPECT_EXIT(
      {
        const LeaveWithin leave(std::chrono::milliseconds(20), 7);
        pause();
      },
      ::testing::ExitedWithCode(7), "");
  const LeaveWithin leave(std::chrono::hours(1), 7);  // does not hold up who leaves in time
}

}  // namespace
}  // namespace mega::engine
