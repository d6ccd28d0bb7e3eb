// A job of higher priority takes the devices of a lower one, which saves first and goes on later.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/e2e/cluster.h"

namespace mega::e2e {
namespace {

using nlohmann::json;

TEST(Preemption, TheLowerJobSavesGivesWayAndGoesOnWhereItWas) {
  Cluster cluster;
  cluster.StartWorker("a", 2);
  const std::string low =
      cluster.Submit(TinyJob(cluster.path(), "low", 2, 100'000) + "  checkpoint: {directory: " +
                     (cluster.path() / "checkpoints").string() + ", interval_steps: 20}\n");
  ASSERT_TRUE(cluster.WaitForStep(low, 20, Seconds(60)));

  const auto start = std::chrono::steady_clock::now();
  const std::string high =
      cluster.Submit(TinyJob(cluster.path(), "high", 2, 10) + "  scheduling: {priority: 5}\n");
  ASSERT_TRUE(cluster.WaitForPhase(high, "JOB_PHASE_SUCCEEDED", Seconds(120)))
      << cluster.Job(high).dump(1) << cluster.Job(low).dump(1);
  std::printf("preempted, saved, replaced and done after %.2f s\n",
              Seconds(std::chrono::steady_clock::now() - start).count());

  ASSERT_TRUE(cluster.WaitForPhase(low, "JOB_PHASE_RUNNING", Seconds(60)));
  const json job = cluster.Job(low);
  ASSERT_EQ(job["attempts"].size(), 2) << job.dump(1);
  EXPECT_EQ(Int(job.value("restarts", json(0))), 0);
  const int64_t made = Int(job["attempts"][0]["last_step"]);
  const int64_t from = Int(job["attempts"][1]["start_step"]);
  std::printf("made %lld steps, went on from %lld\n", static_cast<long long>(made),
              static_cast<long long>(from));
  EXPECT_GE(from, made - 40);
  EXPECT_EQ(cluster.Ctl({"cancel", low}).code, 0);
  EXPECT_TRUE(cluster.WaitForPhase(low, "JOB_PHASE_CANCELLED", Seconds(30)));
}

TEST(Pause, TheDevicesAreFreeUntilItGoesOnWhereItWas) {
  Cluster cluster;
  cluster.StartWorker("a", 2);
  const std::string job =
      cluster.Submit(TinyJob(cluster.path(), "long", 2, 100'000) + "  checkpoint: {directory: " +
                     (cluster.path() / "checkpoints").string() + "}\n");
  ASSERT_TRUE(cluster.WaitForStep(job, 20, Seconds(60)));

  EXPECT_THAT(cluster.Ctl({"pause", job}).out, ::testing::HasSubstr("gives its devices back"));
  ASSERT_TRUE(cluster.WaitForPhase(job, "JOB_PHASE_PAUSED", Seconds(60)))
      << cluster.Job(job).dump(1);
  EXPECT_THAT(cluster.Ctl({"pause", job}).out, ::testing::HasSubstr("is paused"));
  const std::string other = cluster.Submit(TinyJob(cluster.path(), "other", 2, 5));
  ASSERT_TRUE(cluster.WaitForPhase(other, "JOB_PHASE_SUCCEEDED", Seconds(60)));
  EXPECT_EQ(cluster.Job(job)["phase"], "JOB_PHASE_PAUSED");

  EXPECT_EQ(cluster.Ctl({"resume", job}).code, 0);
  ASSERT_TRUE(cluster.WaitForPhase(job, "JOB_PHASE_RUNNING", Seconds(60)));
  const json attempts = cluster.Job(job)["attempts"];
  ASSERT_EQ(attempts.size(), 2) << attempts.dump(1);
  const int64_t made = Int(attempts[0]["last_step"]);
  const int64_t from = Int(attempts[1]["start_step"]);
  std::printf("paused after %lld steps, went on from %lld\n", static_cast<long long>(made),
              static_cast<long long>(from));
  EXPECT_GE(from, 20) << "it was saved when it was paused, and at no other time";
  EXPECT_LE(from, made);
  EXPECT_EQ(cluster.Ctl({"cancel", job}).code, 0);
  EXPECT_TRUE(cluster.WaitForPhase(job, "JOB_PHASE_CANCELLED", Seconds(30)));
}

}  // namespace
}  // namespace mega::e2e
