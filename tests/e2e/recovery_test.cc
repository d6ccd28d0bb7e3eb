// What a fault costs: a killed rank, a killed coordinator, a killed worker.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdio>

#include <set>

#include "tests/e2e/cluster.h"

namespace mega::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// What is promised holds on a machine that does nothing else; tests share theirs.
constexpr double kSlack = 2;

std::string WithCheckpoints(std::string yaml, const fs::path& directory, int64_t interval) {
  return yaml + "  checkpoint: {directory: " + directory.string() +
         ", interval_steps: " + std::to_string(interval) + "}\n";
}

TEST(Recovery, KilledRankEndsInTheSameBits) {
  Cluster cluster;
  cluster.StartWorker("a", 2);
  constexpr int64_t kSteps = 500;  // of milliseconds: rank 1 is found before it ends
  double killed = 0;
  const auto run = [&](const std::string& name, bool disturb) {
    const fs::path checkpoints = cluster.path() / name;
    const std::string uid =
        cluster.Submit(WithCheckpoints(TinyJob(cluster.path(), name, 2, kSteps), checkpoints, 10));
    if (disturb) {
      EXPECT_TRUE(cluster.WaitForStep(uid, 30, Seconds(60)));
      const pid_t victim = cluster.RankPid(uid, 1);
      if (victim <= 0) {  // kill(0, …) would end the test itself
        ADD_FAILURE() << "rank 1 had ended before it could be killed";
        return std::map<std::string, std::string>();
      }
      killed = Now();
      kill(victim, SIGKILL);
    }
    EXPECT_TRUE(cluster.WaitForPhase(uid, "JOB_PHASE_SUCCEEDED", Seconds(120)))
        << cluster.Job(uid).dump(1);
    if (disturb) {
      const json job = cluster.Job(uid);
      EXPECT_EQ(job["attempts"].size(), 2) << job.dump(1);
      EXPECT_EQ(Int(job["attempts"][0].value("failed_rank", json(0))), 1);
      const double next_step = TimeOf(job["attempts"][1]["first_step_time"]) - killed;
      std::printf("kill -9 of rank 1: next step after %.2f s\n", next_step);
      EXPECT_GT(next_step, 0);
      EXPECT_LT(next_step, 3 + kSlack);
      // The same rank ↔ node map.
      EXPECT_EQ(job["attempts"][0]["plan"]["ranks"], job["attempts"][1]["plan"]["ranks"]);
    }
    return FinalState(checkpoints, kSteps);
  };
  const auto undisturbed = run("undisturbed", false);
  const auto disturbed = run("disturbed", true);
  ASSERT_EQ(undisturbed.size(), 2);
  EXPECT_TRUE(undisturbed == disturbed);
}

// Case: a job that was to give devices up was asked to save, nobody passed that on to the ranks,
// and it began again at step 0.
TEST(Recovery, AJobThatIsScaledNowGoesOnFromTheStepItWasSavedAt) {
  constexpr int64_t kSteps = 1500;
  Cluster cluster;
  cluster.StartWorker("a", 1);
  cluster.StartWorker("b", 1);
  std::string yaml = TinyJob(cluster.path(), "smaller", 2, kSteps);
  const std::string fixed = "parallelism: {data_parallel_size: 2}";
  ASSERT_NE(yaml.find(fixed), std::string::npos);
  yaml.replace(yaml.find(fixed), fixed.size(),
               "resources: {nodes: {min: 1, desired: 2, max: 2}, devices_per_node: 1}");
  const fs::path checkpoints = cluster.path() / "checkpoints";
  const std::string uid = cluster.Submit(WithCheckpoints(yaml, checkpoints, 0));
  ASSERT_TRUE(cluster.WaitForStep(uid, 10, Seconds(60)));
  const Result scaled = cluster.Ctl({"scale", uid, "--nodes", "1", "--now"});
  ASSERT_EQ(scaled.code, 0) << scaled.out;
  ASSERT_TRUE(cluster.WaitForPhase(uid, "JOB_PHASE_SUCCEEDED", Seconds(120)))
      << cluster.Job(uid).dump(1);
  const json job = cluster.Job(uid);
  ASSERT_EQ(job["attempts"].size(), 2) << job.dump(1);
  EXPECT_EQ(Int(job["attempts"][1]["plan"]["world_size"]), 1);
  int64_t last = 0, first = 0;  // of the first attempt, of the second
  for (const json& step : cluster.Steps(uid)) {
    if (Int(step["attempt"]) == 1) last = Int(step["step"]);
    if (Int(step["attempt"]) == 2 && first == 0) first = Int(step["step"]);
  }
  EXPECT_GT(first, 10);
  EXPECT_LE(first, last + 1);
  EXPECT_GT(FinalState(checkpoints, first - 1).size(), 0) << "step " << first - 1;
  EXPECT_EQ(FinalState(checkpoints, kSteps).size(), 1);
  for (const auto& entry : fs::recursive_directory_iterator(checkpoints)) {
    EXPECT_EQ(entry.path().string().find(".tmp"), std::string::npos) << entry.path();
  }
}

TEST(Recovery, CoordinatorRestartRepeatsNothing) {
  Cluster cluster;
  cluster.StartWorker("a", 2);
  const std::string uid = cluster.Submit(TinyJob(cluster.path(), "steady", 2, 400));
  ASSERT_TRUE(cluster.WaitForStep(uid, 20, Seconds(60)));
  const pid_t rank0 = cluster.RankPid(uid, 0), rank1 = cluster.RankPid(uid, 1);
  cluster.coordinator().Signal(SIGKILL);
  cluster.coordinator().Wait(Seconds(10));
  cluster.StartCoordinator();
  ASSERT_TRUE(cluster.WaitForStep(uid, 60, Seconds(30)));
  EXPECT_EQ(cluster.RankPid(uid, 0), rank0);
  EXPECT_EQ(cluster.RankPid(uid, 1), rank1);
  ASSERT_TRUE(cluster.WaitForPhase(uid, "JOB_PHASE_SUCCEEDED", Seconds(120)));
  EXPECT_EQ(cluster.Job(uid)["attempts"].size(), 1);
  const std::vector<json> steps = cluster.Steps(uid);
  ASSERT_EQ(steps.size(), 400);
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(Int(steps[i]["step"]), static_cast<int64_t>(i) + 1);
    EXPECT_EQ(Int(steps[i]["attempt"]), 1);
  }
}

// Case: 30 folders of a job that keeps two stayed for ever, all of saves that nobody had committed.
TEST(Recovery, WhatIsSavedWhileTheCoordinatorIsAwayGoesWithTheNextCommit) {
  Cluster cluster;
  cluster.StartWorker("a", 2);
  const fs::path checkpoints = cluster.path() / "checkpoints";
  const std::string uid =
      cluster.Submit(WithCheckpoints(TinyJob(cluster.path(), "alone", 2, 1000), checkpoints, 10));
  ASSERT_TRUE(cluster.WaitForStep(uid, 20, Seconds(60)));
  cluster.coordinator().Signal(SIGKILL);
  cluster.coordinator().Wait(Seconds(10));
  const auto saved = [&] {
    std::set<fs::path> folders;
    for (const auto& job : fs::directory_iterator(checkpoints)) {
      for (const auto& folder : fs::directory_iterator(job)) folders.insert(folder.path());
    }
    return folders;
  };
  ASSERT_TRUE(Eventually([&] { return saved().size() >= 12; }, Seconds(60)));
  cluster.StartCoordinator();
  ASSERT_TRUE(cluster.WaitForPhase(uid, "JOB_PHASE_SUCCEEDED", Seconds(120)));
  std::set<fs::path> kept;
  const json job = cluster.Job(uid);
  for (const json& manifest : job["checkpoints"]) {
    kept.insert(manifest["directory"].get<std::string>());
  }
  EXPECT_EQ(kept.size(), 3);
  EXPECT_TRUE(Eventually([&] { return saved() == kept; }, Seconds(10))) << saved().size();
  for (const fs::path& folder : kept) EXPECT_TRUE(fs::exists(folder / "manifest.json")) << folder;
}

// The node holds one witness set, and somebody is in it.
bool IsVouchedFor(const Cluster& cluster, const std::string& name) {
  const json answer = cluster.CtlJson({"nodes", "-o", "json"});
  for (const json& node : answer.value("nodes", json::array())) {
    if (node["name"] != name && node["name"] != "nodes/" + name) continue;
    const json sets = node.value("witness_sets", json::array());
    return sets.size() == 1 && !sets[0].value("witnesses", json::array()).empty();
  }
  return false;
}

TEST(Recovery, KilledWorkerTakesItsRanksAndTheJobMovesOn) {
  Cluster cluster;
  cluster.StartWorker("a", 2);
  const std::string uid = cluster.Submit(WithCheckpoints(TinyJob(cluster.path(), "moving", 2, 2000),
                                                         cluster.path() / "checkpoints", 10));
  ASSERT_TRUE(cluster.WaitForStep(uid, 15, Seconds(60)));
  cluster.StartWorker("b", 2);
  // As long as a was alone, nobody could say that it is a, and not the coordinator, that is away.
  ASSERT_TRUE(Eventually([&] { return IsVouchedFor(cluster, "a"); }, Seconds(15)));
  cluster.worker("a").Signal(SIGKILL);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(Eventually([&] { return PidsWith("--job " + uid).empty(); }, Seconds(1 + kSlack)))
      << "ranks outlived their worker";
  std::printf("kill -9 of the worker: ranks gone after %.2f s\n",
              Seconds(std::chrono::steady_clock::now() - start).count());
  const auto on_b = [&] {
    const json job = cluster.Job(uid);
    return job.contains("attempts") && job["attempts"].size() == 2 &&
           job.value("phase", "") == "JOB_PHASE_RUNNING";
  };
  ASSERT_TRUE(Eventually(on_b, Seconds(30))) << cluster.Job(uid).dump(1);
  const json attempt = cluster.Job(uid)["attempts"][1];
  for (const json& rank : attempt["ranks"]) EXPECT_EQ(rank["node"], "b");
  EXPECT_GE(Int(attempt["start_step"]), 10);
  EXPECT_EQ(cluster.Ctl({"cancel", uid}).code, 0);
  EXPECT_TRUE(cluster.WaitForPhase(uid, "JOB_PHASE_CANCELLED", Seconds(30)));
}

}  // namespace
}  // namespace mega::e2e
