// A rank that stands still: it is named, ended, and the job goes on.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>

#include "tests/e2e/cluster.h"

namespace mega::e2e {
namespace {

using nlohmann::json;

constexpr int64_t kSteps = 500;  // of milliseconds

std::string Job(const Cluster& cluster, const std::string& name, int64_t nodes) {
  return TinyJob(cluster.path(), name, 2, kSteps) +
         "  checkpoint: {directory: " + (cluster.path() / name).string() +
         ", interval_steps: 10}\n  resources: {nodes: {desired: " + std::to_string(nodes) +
         "}}\n  health: {hang: {step_timeout: 6s}}\n";
}

TEST(Hang, AStoppedRankIsNamedAndTheJobEndsInTheSameBits) {
  Cluster cluster;
  cluster.StartWorker("a", 1);
  cluster.StartWorker("b", 1);
  const std::string undisturbed = cluster.Submit(Job(cluster, "undisturbed", 2));
  ASSERT_TRUE(cluster.WaitForPhase(undisturbed, "JOB_PHASE_SUCCEEDED", Seconds(120)));

  const std::string uid = cluster.Submit(Job(cluster, "disturbed", 2));
  ASSERT_TRUE(cluster.WaitForStep(uid, 30, Seconds(60)));
  const pid_t victim = cluster.RankPid(uid, 1);
  ASSERT_GT(victim, 0) << "rank 1 had ended before it could be stopped";
  ASSERT_EQ(kill(victim, SIGSTOP), 0);
  const std::string node = cluster.Job(uid)["attempts"][0]["ranks"][1]["node"];
  const auto start = std::chrono::steady_clock::now();
  const auto is_named = [&] {
    const std::string events = cluster.Ctl({"events", uid}).out;
    return events.find("rank 1 on node '" + node + "' never joined collective") !=
           std::string::npos;
  };
  EXPECT_TRUE(Eventually(is_named, Seconds(40))) << cluster.Ctl({"events", uid}).out;
  std::printf("SIGSTOP of rank 1: named after %.2f s, of a step_timeout of 6 s\n",
              Seconds(std::chrono::steady_clock::now() - start).count());
  EXPECT_TRUE(cluster.WaitForPhase(uid, "JOB_PHASE_SUCCEEDED", Seconds(120)))
      << cluster.Job(uid).dump(1);
  const json job = cluster.Job(uid);
  ASSERT_EQ(job["attempts"].size(), 2) << job.dump(1);
  EXPECT_EQ(job["attempts"][0].value("failed_node", ""), node);
  EXPECT_NE(kill(victim, 0), 0) << "the stopped process is still there";
  const auto state = FinalState(cluster.path() / "disturbed", kSteps);
  ASSERT_EQ(state.size(), 2);
  EXPECT_TRUE(state == FinalState(cluster.path() / "undisturbed", kSteps));
}

TEST(Hang, WhenAllRanksAreStoppedTheJobGoesOnToo) {
  Cluster cluster;
  cluster.StartWorker("a", 2);
  const std::string uid = cluster.Submit(Job(cluster, "all", 1));
  ASSERT_TRUE(cluster.WaitForStep(uid, 30, Seconds(60)));
  for (const int rank : {0, 1}) {
    const pid_t pid = cluster.RankPid(uid, rank);
    if (pid > 0) kill(pid, SIGSTOP);
  }
  EXPECT_TRUE(cluster.WaitForPhase(uid, "JOB_PHASE_SUCCEEDED", Seconds(120)))
      << cluster.Job(uid).dump(1);
  EXPECT_EQ(cluster.Job(uid)["attempts"].size(), 2);
  EXPECT_NE(cluster.Ctl({"events", uid}).out.find("HANG"), std::string::npos);
}

}  // namespace
}  // namespace mega::e2e
