// Nodes as network namespaces: what the loss of a process, of a link, of a direction costs, printed
// and held against what is promised. Lease 10 s, skew 1 s.
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/e2e/cluster.h"
#include "tests/e2e/network.h"

namespace mega::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr double kLease = 10;
// What is promised holds on a machine that does nothing else; tests share theirs.
constexpr double kSlack = 3;
constexpr int64_t kSteps = 600;
constexpr int64_t kInterval = 50;
constexpr int64_t kEndless = 1'000'000;  // until it is cancelled

class NetworkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Network::WhyNot(); !why.empty()) GTEST_SKIP() << why;
    network_ = std::make_unique<Network>();
    network_->AddHost("coordinator");
  }

  void StartCluster(const std::vector<std::string>& nodes) {
    for (const std::string& node : nodes) {
      if (!network_->Has(node)) network_->AddHost(node);
    }
    cluster_ = std::make_unique<Cluster>(network_.get());
    for (const std::string& node : nodes) cluster_->StartWorker(node, 1);
  }

  fs::path Checkpoints(const std::string& name) const { return cluster_->path() / name; }

  // One rank on each of `nodes` nodes.
  std::string Submit(const std::string& name, int64_t nodes, int64_t steps,
                     const std::string& more = "") {
    std::string yaml = TinyJob(cluster_->path(), name, nodes, steps);
    const std::string fixed = "parallelism: {data_parallel_size: " + std::to_string(nodes) + "}";
    yaml.replace(yaml.find(fixed), fixed.size(),
                 "resources: {nodes: {min: 1, desired: " + std::to_string(nodes) +
                     ", max: " + std::to_string(nodes) + "}, devices_per_node: 1}");
    return cluster_->Submit(yaml + "  checkpoint: {directory: " + Checkpoints(name).string() +
                            ", interval_steps: " + std::to_string(kInterval) + "}\n" + more);
  }
  bool Succeeds(const std::string& uid) {
    const bool has_ended = cluster_->WaitForPhase(uid, "JOB_PHASE_SUCCEEDED", Seconds(180));
    EXPECT_TRUE(has_ended) << cluster_->Job(uid).dump(1);
    return has_ended;
  }
  std::string NodeOf(const std::string& uid, int rank) {
    return cluster_->Job(uid)["attempts"].back()["ranks"][rank]["node"];
  }
  bool WaitForAttempt(const std::string& uid, size_t number, Seconds within) {
    return Eventually([&] { return cluster_->Job(uid)["attempts"].size() >= number; }, within);
  }

  // From the fault to the end of attempt `number` and to the first step of the next.
  struct Cost {
    double detection = 0;
    double next_step = 0;
    int64_t steps_lost = 0;
  };
  Cost Measure(const std::string& what, const std::string& uid, size_t number, double fault) {
    const json job = cluster_->Job(uid);
    if (job["attempts"].size() <= number) {
      ADD_FAILURE() << "there is no attempt after " << number << ": " << job.dump(1);
      return {};
    }
    const json& before = job["attempts"][number - 1];
    const json& after = job["attempts"][number];
    const Cost cost{.detection = TimeOf(before["stop_time"]) - fault,
                    .next_step = TimeOf(after["first_step_time"]) - fault,
                    .steps_lost = Int(before.value("last_step", json(0))) -
                                  Int(after.value("start_step", json(0)))};
    std::printf("%s: detected after %.2f s, next step after %.2f s, %lld steps lost\n",
                what.c_str(), cost.detection, cost.next_step,
                static_cast<long long>(cost.steps_lost));
    // Saved in the background: the checkpoint of one interval ago may be the newest.
    EXPECT_LE(cost.steps_lost, 2 * kInterval);
    return cost;
  }

  // The curve and the final state of two ranks that nothing disturbs.
  const std::map<std::string, std::string>& Undisturbed() {
    static const auto state = [this] {
      const std::string uid = Submit("undisturbed", 2, kSteps);
      EXPECT_TRUE(Succeeds(uid));
      return FinalState(Checkpoints("undisturbed"), kSteps);
    }();
    EXPECT_EQ(state.size(), 2);
    return state;
  }
  void ExpectSameBits(const std::string& name) {
    const auto& undisturbed = Undisturbed();
    EXPECT_TRUE(FinalState(Checkpoints(name), kSteps) == undisturbed);
  }
  // Every step of the job once, all made by one attempt.
  void ExpectNoStepLost(const std::string& uid) {
    EXPECT_EQ(cluster_->Job(uid)["attempts"].size(), 1);
    const std::vector<json> steps = cluster_->Steps(uid);
    for (size_t i = 0; i < steps.size(); ++i) {
      ASSERT_EQ(Int(steps[i]["step"]), static_cast<int64_t>(i) + 1);
    }
  }

  std::unique_ptr<Network> network_;
  std::unique_ptr<Cluster> cluster_;
};

TEST_F(NetworkTest, AKilledRankCostsSecondsAndNoBit) {
  StartCluster({"a", "b"});
  const std::string uid = Submit("killed-rank", 2, kSteps);
  ASSERT_TRUE(cluster_->WaitForStep(uid, 2 * kInterval, Seconds(60)));
  const pid_t victim = cluster_->RankPid(uid, 1);
  ASSERT_GT(victim, 0);
  const double fault = Now();
  kill(victim, SIGKILL);
  ASSERT_TRUE(Succeeds(uid));
  EXPECT_LT(Measure("rank killed", uid, 1, fault).next_step, 3 + kSlack);
  ExpectSameBits("killed-rank");
}

TEST_F(NetworkTest, AKilledWorkerIsReplacedAfterTheLease) {
  StartCluster({"a", "b", "c"});
  const std::string uid = Submit("killed-worker", 2, kSteps);
  ASSERT_TRUE(cluster_->WaitForStep(uid, 2 * kInterval, Seconds(60)));
  const std::string node = NodeOf(uid, 0);
  const double fault = Now();
  const pid_t survivor = cluster_->RankPid(uid, 1);
  ASSERT_GT(survivor, 0);
  cluster_->worker(node).Signal(SIGKILL);
  // Who is left is ended at once, wherever it waits for the one that is gone.
  EXPECT_TRUE(Eventually([&] { return kill(survivor, 0) != 0; }, Seconds(2 + kSlack)));
  ASSERT_TRUE(Succeeds(uid));
  EXPECT_LT(Measure("worker killed", uid, 1, fault).next_step, kLease + 5 + kSlack);
  EXPECT_NE(NodeOf(uid, 0), node);
  ExpectSameBits("killed-worker");
}

TEST_F(NetworkTest, AnUnpluggedNodeIsReplacedAfterTheLeaseAndWelcomeAgain) {
  StartCluster({"a", "b", "c"});
  const std::string uid = Submit("unplugged", 2, kSteps);
  ASSERT_TRUE(cluster_->WaitForStep(uid, 2 * kInterval, Seconds(60)));
  const std::string node = NodeOf(uid, 0);
  const double fault = Now();
  network_->Unplug(node);
  ASSERT_TRUE(Succeeds(uid));
  EXPECT_LT(Measure("node unplugged", uid, 1, fault).next_step, kLease + 5 + kSlack);
  EXPECT_NE(NodeOf(uid, 0), node);
  ExpectSameBits("unplugged");
  network_->Plug(node);
  EXPECT_TRUE(Eventually(
      [&] {
        const json answer = cluster_->CtlJson({"nodes", "-o", "json"});
        for (const json& n : answer.value("nodes", json::array())) {
          if (n["name"] == "nodes/" + node || n["name"] == node)
            return n["state"] == "NODE_STATE_READY";
        }
        return false;
      },
      Seconds(60)));
}

// Its link is up, and what it says is lost: its ranks must have ended by themselves before anybody
// else gets them.
TEST_F(NetworkTest, ANodeCutFromEverybodyEndsItsRanksBeforeTheyStartElsewhere) {
  StartCluster({"a", "b", "c"});
  const std::string uid = Submit("cut-off", 2, kSteps);
  ASSERT_TRUE(cluster_->WaitForStep(uid, 2 * kInterval, Seconds(60)));
  const std::string node = NodeOf(uid, 0);
  const pid_t rank = cluster_->RankPid(uid, 0);
  ASSERT_GT(rank, 0);
  const double fault = Now();
  for (const char* other : {"coordinator", "a", "b", "c"}) {
    if (other != node) network_->Cut(node, other);
  }
  EXPECT_TRUE(Eventually([&] { return kill(rank, 0) != 0; }, Seconds(kLease + 5 + kSlack)));
  const double fenced = Now();
  ASSERT_TRUE(Succeeds(uid));
  const json job = cluster_->Job(uid);
  const double granted = TimeOf(job["attempts"][1]["create_time"]);
  std::printf("node cut off: its rank ended after %.2f s, started elsewhere after %.2f s\n",
              fenced - fault, granted - fault);
  EXPECT_LT(fenced, granted);
  EXPECT_LT(Measure("node cut off", uid, 1, fault).next_step, kLease + 5 + kSlack);
  ExpectSameBits("cut-off");
}

TEST_F(NetworkTest, ANodeCutFromTheCoordinatorAloneLosesNoStep) {
  StartCluster({"a", "b", "c"});
  const std::string uid = Submit("one-way-out", 2, kEndless);
  ASSERT_TRUE(cluster_->WaitForStep(uid, kInterval, Seconds(60)));
  const std::string node = NodeOf(uid, 0);
  const pid_t rank = cluster_->RankPid(uid, 0);
  const int64_t before = cluster_->LastStep(uid);
  network_->Cut(node, "coordinator");
  EXPECT_FALSE(WaitForAttempt(uid, 2, Seconds(3 * kLease)));
  network_->Heal(node, "coordinator");
  EXPECT_TRUE(Eventually([&] { return cluster_->LastStep(uid) > before + 10; }, Seconds(30)));
  EXPECT_EQ(cluster_->RankPid(uid, 0), rank);
  ExpectNoStepLost(uid);
  std::printf("cut from the coordinator for %.0f s: %lld steps made meanwhile, none lost\n",
              3 * kLease, static_cast<long long>(cluster_->LastStep(uid) - before));
  cluster_->Ctl({"cancel", uid});
}

TEST_F(NetworkTest, ACoordinatorAwayForAMinuteCostsNoStep) {
  StartCluster({"a", "b"});
  const std::string uid = Submit("alone", 2, kEndless);
  ASSERT_TRUE(cluster_->WaitForStep(uid, kInterval, Seconds(60)));
  const pid_t rank0 = cluster_->RankPid(uid, 0), rank1 = cluster_->RankPid(uid, 1);
  const int64_t before = cluster_->LastStep(uid);
  cluster_->coordinator().Signal(SIGKILL);
  cluster_->coordinator().Wait(Seconds(10));
  EXPECT_FALSE(Eventually([&] { return kill(rank0, 0) != 0 || kill(rank1, 0) != 0; }, Seconds(60)))
      << "a rank has ended";
  cluster_->StartCoordinator();
  EXPECT_TRUE(Eventually([&] { return cluster_->LastStep(uid) > before + 10; }, Seconds(30)));
  EXPECT_EQ(cluster_->RankPid(uid, 0), rank0);
  EXPECT_EQ(cluster_->RankPid(uid, 1), rank1);
  ExpectNoStepLost(uid);
  std::printf("coordinator away for 60 s: %lld steps made meanwhile, none lost\n",
              static_cast<long long>(cluster_->LastStep(uid) - before));
  cluster_->Ctl({"cancel", uid});
}

TEST_F(NetworkTest, ARuleSwapsTheNodeOfARankForASpare) {
  StartCluster({"a", "b", "c"});
  const std::string uid =
      Submit("swap", 2, kSteps, "  recovery: {rules: [signal SIGBUS -> spare]}\n");
  ASSERT_TRUE(cluster_->WaitForStep(uid, 2 * kInterval, Seconds(60)));
  const std::string node = NodeOf(uid, 1);
  const pid_t victim = cluster_->RankPid(uid, 1);
  ASSERT_GT(victim, 0);
  const double fault = Now();
  kill(victim, SIGBUS);
  ASSERT_TRUE(Succeeds(uid));
  EXPECT_LT(Measure("spare swap", uid, 1, fault).next_step, 3 + kSlack);
  EXPECT_NE(NodeOf(uid, 1), node);
  ExpectSameBits("swap");
}

TEST_F(NetworkTest, AJobShrinksFromFourNodesToThreeAndGrowsAgain) {
  StartCluster({"a", "b", "c", "d"});
  const std::string elastic =
      "  elastic: {on_loss: shrink, shrink_after: 1s, on_gain: next_checkpoint, cooldown: 1s}\n";
  const std::string uid = Submit("elastic", 4, kEndless, elastic);
  ASSERT_TRUE(cluster_->WaitForStep(uid, 2 * kInterval, Seconds(60)));
  const std::string node = NodeOf(uid, 3);
  const double fault = Now();
  network_->Unplug(node);
  ASSERT_TRUE(WaitForAttempt(uid, 2, Seconds(kLease + 5 + kSlack)));
  const int64_t shrunk = cluster_->LastStep(uid);
  ASSERT_TRUE(cluster_->WaitForStep(uid, shrunk + kInterval, Seconds(60)));
  network_->Plug(node);
  ASSERT_TRUE(WaitForAttempt(uid, 3, Seconds(60)));
  const int64_t grown = cluster_->LastStep(uid);
  ASSERT_TRUE(cluster_->WaitForStep(uid, grown + kInterval, Seconds(60)));
  cluster_->Ctl({"cancel", uid});
  ASSERT_TRUE(cluster_->WaitForPhase(uid, "JOB_PHASE_CANCELLED", Seconds(60)));
  const json job = cluster_->Job(uid);
  ASSERT_EQ(job["attempts"].size(), 3) << job.dump(1);
  const int64_t sizes[] = {4, 3, 4};
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(job["attempts"][i]["ranks"].size(), sizes[i]) << i;
  EXPECT_LT(Measure("shrink 4 to 3", uid, 1, fault).next_step, kLease + 5 + kSlack);
  // Growing back is at a checkpoint: no more is made again than what was made while it was written.
  EXPECT_LE(Int(job["attempts"][1].value("last_step", json(0))) -
                Int(job["attempts"][2].value("start_step", json(0))),
            kInterval / 2);

  const std::string other = Submit("steady", 4, kEndless);
  ASSERT_TRUE(cluster_->WaitForStep(other, grown + kInterval, Seconds(300)));
  cluster_->Ctl({"cancel", other});
  std::map<int64_t, double> losses, expected;  // a step made again counts as made last
  for (const json& step : cluster_->Steps(uid)) losses[Int(step["step"])] = step["loss"];
  for (const json& step : cluster_->Steps(other)) expected[Int(step["step"])] = step["loss"];
  double worst = 0;
  for (int64_t step = 1; step <= grown + kInterval; ++step) {
    ASSERT_TRUE(losses.contains(step) && expected.contains(step)) << step;
    worst = std::max(worst, std::abs(losses[step] - expected[step]) / expected[step]);
  }
  std::printf("4 to 3 to 4 nodes: the curve differs by at most %.1e\n", worst);
  EXPECT_LT(worst, 1e-5);
}

// Case: of a host's several addresses one was chosen that nobody could reach.
TEST_F(NetworkTest, HostsWithAnAddressThatLeadsNowhereTrainTogether) {
  for (const char* node : {"a", "b"}) {
    network_->AddHost(node);
    network_->AddDeadEnd(node);
  }
  StartCluster({"a", "b"});
  const std::string uid = Submit("two-addresses", 2, 100);
  ASSERT_TRUE(Succeeds(uid));
  EXPECT_EQ(cluster_->Job(uid)["attempts"].size(), 1);
}

// Case: a busy node missed its beats and was declared dead.
TEST_F(NetworkTest, ABusyMachineKeepsItsLeases) {
  StartCluster({"a", "b"});
  const std::string uid = Submit("busy", 2, kEndless);
  ASSERT_TRUE(cluster_->WaitForStep(uid, 10, Seconds(60)));
  std::vector<std::unique_ptr<Process>> load;
  for (int i = 0; i < 16; ++i) {
    load.push_back(std::make_unique<Process>(Process::Options{
        .argv = {"/bin/sh", "-c", "while :; do :; done"}, .output = cluster_->path() / "load"}));
  }
  EXPECT_FALSE(WaitForAttempt(uid, 2, Seconds(2 * kLease)));
  load.clear();
  ExpectNoStepLost(uid);
  cluster_->Ctl({"cancel", uid});
}

}  // namespace
}  // namespace mega::e2e
