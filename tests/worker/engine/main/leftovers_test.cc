// What a rank finds on the disk of saves that were never committed, and of commits that were never
// written down.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "tests/worker/engine/main/scripted_worker.h"
#include "worker/engine/checkpoint/writer.h"

namespace mega::engine {
namespace {

using ::testing::_;
using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

std::string JobFolder(const testing::TempDir& dir) { return dir / "checkpoints/tiny-01234567"; }

// What lies in the folders of the steps.
std::map<int64_t, std::set<std::string>> Saved(const testing::TempDir& dir) {
  namespace fs = std::filesystem;
  std::map<int64_t, std::set<std::string>> saved;
  for (const auto& folder : fs::directory_iterator(JobFolder(dir))) {
    auto& files = saved[std::stoll(folder.path().filename().string().substr(5))];
    for (const auto& file : fs::directory_iterator(folder))
      files.insert(file.path().filename().string());
  }
  return saved;
}

const std::set<std::string> kWhole = {"a1-r00000.safetensors", "manifest.json"};

// Case: each save of the time in which the coordinator was away stayed for ever.
TEST(Leftovers, SavesThatNobodyAnsweredGoWithTheNextCommit) {
  testing::TempDir dir;
  v1::JobSpec spec = TinyJob(dir);
  spec.mutable_training()->set_steps(6);
  spec.mutable_checkpoint()->set_interval_steps(1);
  const v1::StartTraining start = StartOf(spec, dir);
  ScriptedWorker worker(dir, start, {.first_commit = 5});
  ASSERT_EQ(RunRank(start, worker), absl::OkStatus());
  EXPECT_THAT(Saved(dir), ElementsAre(Pair(5, kWhole), Pair(6, kWhole)));
}

// A job's checkpoints of steps 1 to 4, and the order for its third attempt, which loads that of
// step 3.
struct ThirdAttempt {
  explicit ThirdAttempt(const testing::TempDir& dir) {
    v1::JobSpec spec = TinyJob(dir);
    spec.mutable_training()->set_steps(4);
    spec.mutable_checkpoint()->set_interval_steps(1);
    start = StartOf(spec, dir);
    {
      ScriptedWorker worker(dir, start);
      MEGA_CHECK_OK(RunRank(start, worker));
      saved = worker.committed();
    }
    start.mutable_rank()->set_attempt(3);
    start.mutable_rank()->set_epoch(3);
    *start.mutable_load() = saved.at(2);
  }
  v1::StartTraining start;
  std::vector<v1::Manifest> saved;
};

// Case: they were below the newest committed step, and nobody looked there. A node without rank 0
// sees no manifest, so that these do not tell which are kept.
TEST(Leftovers, WhatAnEarlierAttemptLeftBetweenTheCheckpointsThatAreKeptGoes) {
  testing::TempDir dir;
  ThirdAttempt third(dir);
  for (const int64_t step : {1, 2}) {
    std::filesystem::remove(checkpoint::StepFolder(JobFolder(dir), step) + "/manifest.json");
  }
  v1::Manifest stub;  // as ranks other than 0 are told
  stub.set_epoch(1);
  stub.set_step(1);
  ScriptedWorker worker(dir, third.start, {.kept = {stub, third.saved[2]}});
  ASSERT_EQ(RunRank(third.start, worker), absl::OkStatus());
  const std::set<std::string> bare = {"a1-r00000.safetensors"};
  EXPECT_THAT(Saved(dir), UnorderedElementsAre(Pair(1, bare), Pair(3, kWhole), Pair(4, _)));
}

TEST(Leftovers, NothingGoesBeforeAllThatIsKeptWasTold) {
  testing::TempDir dir;
  ThirdAttempt third(dir);
  for (const int64_t step : {1, 2}) {
    std::filesystem::remove(checkpoint::StepFolder(JobFolder(dir), step) + "/manifest.json");
  }
  ScriptedWorker worker(dir, third.start, {.kept = {third.saved[0]}});
  ASSERT_EQ(RunRank(third.start, worker), absl::OkStatus());
  EXPECT_EQ(Saved(dir).size(), 4);
}

// Case: the attempt ended right after two commits. The next one wrote the manifest of the
// checkpoint that it loaded, and the other one was none for ever.
TEST(Leftovers, WritesTheMissingManifestOfEachCheckpointThatIsKept) {
  testing::TempDir dir;
  ThirdAttempt third(dir);
  for (const int64_t step : {1, 3}) {
    std::filesystem::remove(checkpoint::StepFolder(JobFolder(dir), step) + "/manifest.json");
  }
  v1::Manifest elsewhere = third.saved[0];
  elsewhere.set_step(2);
  elsewhere.set_directory(dir / "not/here");
  ScriptedWorker worker(dir, third.start, {.kept = {third.saved[0], elsewhere, third.saved[2]}});
  ASSERT_EQ(RunRank(third.start, worker), absl::OkStatus());
  EXPECT_THAT(Saved(dir),
              UnorderedElementsAre(Pair(1, kWhole), Pair(2, kWhole), Pair(3, kWhole), Pair(4, _)));
  EXPECT_FALSE(std::filesystem::exists(dir / "not"));
}

}  // namespace
}  // namespace mega::engine
