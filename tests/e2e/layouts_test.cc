// The result does not depend on how many ranks compute it.
#include <gtest/gtest.h>

#include "tests/e2e/cluster.h"

namespace mega::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::vector<double> Losses(const std::vector<json>& steps) {
  std::vector<double> losses;
  for (const json& step : steps) losses.push_back(step["loss"].get<double>());
  return losses;
}

void ExpectSameCurve(const std::vector<double>& one, const std::vector<double>& other,
                     const std::string& what) {
  ASSERT_EQ(one.size(), other.size()) << what;
  for (size_t i = 0; i < one.size(); ++i) {
    // Rounding only: the same sums in another order, carried through 30 updates.
    EXPECT_NEAR(other[i] / one[i], 1, 1e-5) << what << ", step " << i + 1;
  }
}

std::vector<double> Train(Cluster& cluster, const std::string& name, int64_t dp, int64_t steps,
                          const std::string& more = "") {
  const std::string uid = cluster.Submit(TinyJob(cluster.path(), name, dp, steps) + more);
  EXPECT_TRUE(cluster.WaitForPhase(uid, "JOB_PHASE_SUCCEEDED", Seconds(120)))
      << cluster.Job(uid).dump(1);
  return Losses(cluster.Steps(uid));
}

TEST(Layouts, OneTwoFourAndFiveRanksGiveOneCurve) {
  Cluster cluster;
  cluster.StartWorker("a", 5);
  const std::vector<double> one = Train(cluster, "dp1", 1, 30);
  ASSERT_EQ(one.size(), 30);
  EXPECT_LT(one.back(), one.front() - 0.5) << "nothing was learned";
  for (const int64_t dp : {2, 4, 5}) {
    ExpectSameCurve(one, Train(cluster, "dp" + std::to_string(dp), dp, 30),
                    "dp " + std::to_string(dp));
  }
}

TEST(Layouts, AResumeAtAnotherSizeContinuesTheCurve) {
  Cluster cluster;
  cluster.StartWorker("a", 4);
  const std::vector<double> whole = Train(cluster, "whole", 1, 30);
  // The learning rate follows the length of the whole job, so every part states it and is cut off
  // by the checkpoint it stops at.
  const auto saves = [&](const std::string& name) {
    return "  checkpoint: {directory: " + (cluster.path() / name).string() +
           ", interval_steps: 10, keep: 10";
  };
  const auto step_folder = [&](const std::string& name, int64_t step) {
    char folder[32];
    std::snprintf(folder, sizeof(folder), "step-%08lld", static_cast<long long>(step));
    for (const auto& entry : fs::recursive_directory_iterator(cluster.path() / name)) {
      if (entry.path().filename() == folder) return entry.path().string();
    }
    return std::string("missing");
  };
  Train(cluster, "first", 1, 30, saves("first") + "}\n");
  const std::vector<double> second = Train(
      cluster, "second", 4, 30, saves("second") + ", load: " + step_folder("first", 10) + "}\n");
  ASSERT_EQ(second.size(), 20);
  const std::vector<double> third = Train(
      cluster, "third", 2, 30, saves("third") + ", load: " + step_folder("second", 20) + "}\n");
  ASSERT_EQ(third.size(), 10);
  std::vector<double> joined(whole.begin(), whole.begin() + 10);
  joined.insert(joined.end(), second.begin(), second.begin() + 10);
  joined.insert(joined.end(), third.begin(), third.end());
  ExpectSameCurve(whole, joined, "1 → 4 → 2");
}

}  // namespace
}  // namespace mega::e2e
