// Disks that lie, lose or are full: the job, or the coordinator, goes on with what is still true.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cstdio>

#include "tests/e2e/cluster.h"

namespace mega::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Folders of checkpoints by step.
std::map<int64_t, fs::path> Saved(const fs::path& checkpoints) {
  std::map<int64_t, fs::path> folders;
  if (!fs::exists(checkpoints)) return folders;
  for (const auto& entry : fs::recursive_directory_iterator(checkpoints)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("step-")) folders[std::stoll(name.substr(5))] = entry.path();
  }
  return folders;
}

// The newest step whose two ranks have written their files.
int64_t NewestWritten(const fs::path& checkpoints) {
  int64_t newest = 0;
  for (const auto& [step, folder] : Saved(checkpoints)) {
    const bool is_whole = fs::exists(folder / "a1-r00000.safetensors") &&
                          fs::exists(folder / "a1-r00001.safetensors");
    if (is_whole) newest = step;
  }
  return newest;
}

int Events(const Cluster& cluster, const std::string& uid, const std::string& reason) {
  const std::string events = cluster.Ctl({"events", uid, "-o", "json"}).out;
  int count = 0;
  for (size_t at = events.find(reason); at != std::string::npos; at = events.find(reason, at + 1)) {
    ++count;
  }
  return count;
}

// A job whose newest checkpoint is made unusable, and whose rank is then killed, goes on from the
// one before.
void ExpectToGoOnFromTheOneBefore(const std::function<void(const fs::path&)>& damage) {
  Cluster cluster;
  cluster.StartWorker("a", 2);
  const fs::path checkpoints = cluster.path() / "checkpoints";
  const std::string uid = cluster.Submit(TinyJob(cluster.path(), "damaged", 2, 100'000) +
                                         "  checkpoint: {directory: " + checkpoints.string() +
                                         ", interval_steps: 100, keep: 4}\n");
  const auto committed = [&] {
    std::vector<int64_t> steps;
    for (const json& manifest : cluster.Job(uid).value("checkpoints", json::array())) {
      steps.push_back(Int(manifest["step"]));
    }
    return steps;
  };
  ASSERT_TRUE(Eventually([&] { return committed().size() >= 2; }, Seconds(120)));
  const pid_t rank0 = cluster.RankPid(uid, 0), rank1 = cluster.RankPid(uid, 1);
  ASSERT_GT(rank0, 0);
  ASSERT_GT(rank1, 0);
  kill(rank0, SIGSTOP);
  kill(rank1, SIGSTOP);
  // Nothing is saved while they stand still. What was on its way is awaited: a busy coordinator may
  // be several steps behind, and three damaged ones in a row are a job's end. (A rank that was
  // stopped before it could tell of its last file leaves one step that never comes.)
  (void)Eventually(
      [&] {
        const std::vector<int64_t> steps = committed();
        return !steps.empty() && steps.back() == NewestWritten(checkpoints);
      },
      Seconds(15));
  const std::vector<int64_t> known = committed();
  ASSERT_GE(known.size(), 2);
  const int64_t newest = known.back(), before = known[known.size() - 2];
  for (const auto& [step, folder] : Saved(checkpoints)) {
    if (step >= newest) damage(folder);
  }
  kill(rank1, SIGKILL);
  const auto goes_on = [&] {
    const json attempts = cluster.Job(uid).value("attempts", json::array());
    const json attempt = attempts.empty() ? json::object() : attempts.back();
    return attempt.contains("first_step_time") && attempt.contains("load") &&
           Int(attempt["load"]["step"]) == before;
  };
  EXPECT_TRUE(Eventually(goes_on, Seconds(60))) << cluster.Ctl({"events", uid}).out;
  EXPECT_GE(Events(cluster, uid, "CHECKPOINT_DAMAGED"), 1);
  // The same steps are saved once more, in the same folder, and are good.
  EXPECT_TRUE(Eventually(
      [&] {
        const std::vector<int64_t> steps = committed();
        return !steps.empty() && steps.back() > newest;
      },
      Seconds(60)));
  EXPECT_EQ(cluster.Ctl({"cancel", uid}).code, 0);
}

// Case: the job ended with code 64, "wrong input", though an older checkpoint was there.
TEST(Damage, AByteOfTheNewestCheckpointCostsTheJobThatCheckpoint) {
  ExpectToGoOnFromTheOneBefore([](const fs::path& folder) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() != ".safetensors") continue;
      std::string bytes = ReadFile(entry.path());
      bytes.back() = static_cast<char>(bytes.back() ^ 1);
      WriteFile(entry.path(), bytes);
    }
  });
}

TEST(Damage, SoDoesTheLossOfItsFolder) {
  ExpectToGoOnFromTheOneBefore([](const fs::path& folder) { fs::remove_all(folder); });
}

// Case: steps could not be written, RocksDB ended the coordinator on an assertion, SIGABRT.
TEST(Damage, AFullDiskEndsTheCoordinatorWithThreeAndNothingIsLost) {
  Cluster cluster;
  cluster.StartWorker("a", 2);
  const std::string uid = cluster.Submit(TinyJob(cluster.path(), "full", 2, 100'000));
  ASSERT_TRUE(cluster.WaitForStep(uid, 20, Seconds(60)));
  const pid_t rank0 = cluster.RankPid(uid, 0);
  // No file of it can grow any more.
  const rlimit none{0, 0};
  ASSERT_EQ(prlimit(cluster.coordinator().pid(), RLIMIT_FSIZE, &none, nullptr), 0);
  const auto exit = cluster.coordinator().Wait(Seconds(30));
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->code, 3) << exit->signal;
  cluster.StartCoordinator();
  // What was reported last may be what could not be written.
  EXPECT_GT(Int(cluster.Job(uid).value("last_step", json(0))), 0);
  EXPECT_TRUE(cluster.WaitForStep(uid, cluster.LastStep(uid) + 20, Seconds(30)));
  EXPECT_EQ(cluster.RankPid(uid, 0), rank0) << "the job went on meanwhile";
  EXPECT_EQ(cluster.Ctl({"cancel", uid}).code, 0);
}

// Case: the worker ended its ranks, for "they have been replaced".
TEST(Damage, ACoordinatorOnAnEmptyFolderEndsNoRank) {
  Cluster cluster;
  cluster.StartWorker("a", 2);
  const std::string uid = cluster.Submit(TinyJob(cluster.path(), "kept", 2, 100'000));
  ASSERT_TRUE(cluster.WaitForStep(uid, 20, Seconds(60)));
  const pid_t rank0 = cluster.RankPid(uid, 0), rank1 = cluster.RankPid(uid, 1);
  const fs::path folder = cluster.path() / "coordinator", kept = cluster.path() / "kept";
  const auto end_coordinator = [&] {
    cluster.coordinator().Signal(SIGTERM);
    cluster.coordinator().Wait(Seconds(20));
  };
  end_coordinator();
  fs::rename(folder, kept);
  cluster.StartCoordinator();
  EXPECT_TRUE(Eventually(
      [&] {
        return cluster.worker("a").Output().find("start the coordinator on its own state folder") !=
               std::string::npos;
      },
      Seconds(20)))
      << cluster.worker("a").Output();
  EXPECT_EQ(cluster.RankPid(uid, 0), rank0);
  EXPECT_EQ(cluster.RankPid(uid, 1), rank1);

  end_coordinator();
  fs::remove_all(folder);
  fs::rename(kept, folder);
  cluster.StartCoordinator();
  EXPECT_TRUE(cluster.WaitForStep(uid, cluster.LastStep(uid) + 20, Seconds(30)));
  EXPECT_EQ(cluster.RankPid(uid, 0), rank0);
  EXPECT_EQ(cluster.Job(uid)["attempts"].size(), 1);
  EXPECT_EQ(cluster.Ctl({"cancel", uid}).code, 0);
}

}  // namespace
}  // namespace mega::e2e
