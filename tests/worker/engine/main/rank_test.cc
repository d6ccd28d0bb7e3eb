#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/worker/engine/main/scripted_worker.h"

namespace mega::engine {
namespace {

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

}  // namespace
}  // namespace mega::engine
