// What people do with the checkpoints of a job that trains.
#include <gtest/gtest.h>

#include "tests/e2e/cluster.h"

namespace mega::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

TEST(Checkpoints, OneIsPinnedVerifiedGoneBackToAndDeleted) {
  Cluster cluster;
  cluster.StartWorker("a", 2);
  const std::string uid =
      cluster.Submit(TinyJob(cluster.path(), "kept", 2, 1'000'000) +
                     "  checkpoint: {directory: " + (cluster.path() / "checkpoints").string() +
                     ", interval_steps: 100, keep: 2}\n");
  const auto committed = [&] {
    std::vector<int64_t> steps;
    for (const json& manifest : cluster.Job(uid).value("checkpoints", json::array())) {
      steps.push_back(Int(manifest["step"]));
    }
    return steps;
  };
  // It trains on, and what was the newest may be gone when it is asked for.
  std::string pinned;
  const auto pin_newest = [&] {
    const std::vector<int64_t> steps = committed();
    if (steps.empty()) return false;
    pinned = std::to_string(steps.back());
    return cluster.Ctl({"checkpoints", "pin", uid, pinned}).code == 0;
  };
  ASSERT_TRUE(Eventually(pin_newest, Seconds(120)));
  const int64_t step = std::stoll(pinned);
  ASSERT_TRUE(Eventually(
      [&] {
        const std::vector<int64_t> steps = committed();
        return steps.size() == 3 && steps[0] == step && steps[1] > step + 100;
      },
      Seconds(60)));
  const Result told = cluster.Ctl({"checkpoints", "describe", uid, pinned});
  EXPECT_NE(told.out.find("optimizer.exp_avg_sq"), std::string::npos) << told.out;
  const Result verified = cluster.Ctl({"checkpoints", "verify", uid, pinned});
  EXPECT_EQ(verified.code, 0) << verified.out;

  EXPECT_EQ(cluster.Ctl({"restart", uid, "--from-step", std::to_string(step + 1)}).code, 3);
  ASSERT_EQ(cluster.Ctl({"restart", uid, "--from-step", pinned}).code, 0);
  ASSERT_TRUE(Eventually(
      [&] {
        const json attempts = cluster.Job(uid)["attempts"];
        return attempts.size() == 2 && attempts[1].contains("first_step_time");
      },
      Seconds(60)));
  const json job = cluster.Job(uid);
  EXPECT_EQ(Int(job["attempts"][1]["start_step"]), step);
  EXPECT_EQ(Int(job["restarts"]), 0);
  // The same steps are saved again, in the same folders, and are good.
  const std::string first = pinned;
  ASSERT_TRUE(Eventually([&] { return pin_newest() && pinned != first; }, Seconds(60)));
  const Result again = cluster.Ctl({"checkpoints", "verify", uid, pinned});
  EXPECT_EQ(again.code, 0) << again.out;
  const json described =
      json::parse(cluster.Ctl({"checkpoints", "describe", uid, pinned, "-o", "json"}).out);
  EXPECT_EQ(Int(described["attempt"]), 2);

  const fs::path folder = job["checkpoints"][0]["directory"].get<std::string>();
  ASSERT_TRUE(fs::exists(folder / "manifest.json"));
  pinned = first;
  EXPECT_EQ(cluster.Ctl({"checkpoints", "delete", uid, pinned}).code, 4);
  EXPECT_EQ(cluster.Ctl({"checkpoints", "delete", uid, pinned, "--force"}).code, 0);
  EXPECT_TRUE(Eventually([&] { return !fs::exists(folder); }, Seconds(30)));
  EXPECT_EQ(cluster.Ctl({"cancel", uid}).code, 0);
}

}  // namespace
}  // namespace mega::e2e
