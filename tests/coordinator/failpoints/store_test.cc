// Every operation on the disk, once with each fault: what was acknowledged is there at the next
// start, what was refused is there whole or not at all, and the folder serves on.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "coordinator/core/apply.h"
#include "coordinator/core/step.h"
#include "coordinator/state/rocksdb/rocksdb_store.h"
#include "gtest/gtest.h"
#include "rocksdb/env.h"
#include "tests/coordinator/failpoints/crash_disk.h"
#include "tests/support/temp_dir.h"

namespace mega::state {
namespace {

using Batch = std::vector<v1::Mutation>;

std::string Text(const core::State& state) { return core::ToSnapshot(state).DebugString(); }

// What a coordinator decides in a short life, one batch for each input that changed something.
std::vector<Batch> Decisions() {
  core::State state;
  std::vector<Batch> batches;
  const auto feed = [&](v1::CoreEvent event) {
    *event.mutable_now() = ToProto(absl::FromUnixSeconds(1'700'000'000 + std::ssize(batches)));
    core::Decision decision = core::Step(state, event);
    if (!decision.mutations.empty()) batches.push_back(std::move(decision.mutations));
  };
  v1::CoreEvent started;
  started.mutable_started()->set_new_cluster_id("cluster");
  feed(started);
  for (const std::string name : {"a", "b", "c", "d"}) {
    v1::CoreEvent submit;
    submit.mutable_submit()->set_uid(name);
    submit.mutable_submit()->set_request_id("request of " + name);
    submit.mutable_submit()->mutable_metadata()->set_name(name);
    feed(submit);
    if (name == "c") {
      v1::CoreEvent cancel;
      cancel.mutable_cancel()->set_uid("b");
      feed(cancel);
    }
  }
  return batches;
}

// What is stored after the first 0, 1, … batches.
std::vector<std::string> TextsAfter(const std::vector<Batch>& batches) {
  core::State state;
  std::vector<std::string> texts = {Text(state)};
  for (const Batch& batch : batches) {
    for (const v1::Mutation& mutation : batch) core::Apply(state, mutation);
    texts.push_back(Text(state));
  }
  return texts;
}

class Failpoints : public ::testing::TestWithParam<DiskFault> {
 protected:
  struct Life {
    size_t acked = 0;  // batches of all that were acknowledged
    bool has_failed = false;
  };

  // Opens the store and commits batches until `end`, or until something fails.
  Life Live(const std::string& folder, rocksdb::Env* env, size_t acked, size_t end) const {
    Life life{.acked = acked};
    auto store = RocksDbStore::Open(folder, env);
    life.has_failed = !store.ok();
    for (; !life.has_failed && life.acked < end; ++life.acked) {
      std::vector<v1::StepReport> steps(1);
      steps[0].set_job_uid("a");
      steps[0].set_step(static_cast<int64_t>(life.acked) + 1);
      life.has_failed = !(*store)->AppendSteps(steps).ok();
      if (life.has_failed) break;
      life.has_failed = !(*store)->Commit(batches_[life.acked]).ok();
      if (life.has_failed) break;
    }
    if (life.has_failed && store.ok()) {  // the log is broken: nothing is acknowledged any more
      EXPECT_EQ((*store)->Commit(batches_[0]).code(), absl::StatusCode::kFailedPrecondition);
    }
    return life;
  }

  const std::vector<Batch> batches_ = Decisions();
  const std::vector<std::string> texts_ = TextsAfter(batches_);
};

TEST_P(Failpoints, WhatWasAcknowledgedIsThereAndTheRestIsWholeOrAbsent) {
  ASSERT_GE(batches_.size(), 6u);
  const size_t half = batches_.size() / 2;
  int64_t points = 0;
  for (bool is_reached = true; is_reached; ++points) {
    SCOPED_TRACE(::testing::Message() << Name(GetParam()) << " at operation " << points + 1);
    const testing::TempDir folder;
    auto disk = std::make_shared<CrashDisk>(GetParam(), points + 1);
    const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(disk);
    // Two lives of the process: the second reads the log of the first.
    Life life = Live(folder / "db", env.get(), 0, half);
    if (!life.has_failed) life = Live(folder / "db", env.get(), life.acked, batches_.size());
    is_reached = disk->has_failed();
    disk->Restart();

    // A disk without faults, on which a sync costs nothing.
    const std::unique_ptr<rocksdb::Env> sound =
        rocksdb::NewCompositeEnv(std::make_shared<CrashDisk>(DiskFault::kKill, 0));
    {
      const auto store = RocksDbStore::Open(folder / "db", sound.get());
      ASSERT_TRUE(store.ok()) << store.status().ToString();
      const auto loaded = (*store)->Load();
      ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
      const std::string text = Text(*loaded);
      const auto found = std::find(texts_.begin(), texts_.end(), text);
      ASSERT_NE(found, texts_.end()) << "a state that never was: " << text;
      const auto stored = static_cast<size_t>(found - texts_.begin());
      EXPECT_GE(stored, life.acked) << "acknowledged, and lost";
      EXPECT_LE(stored, std::min(life.acked + 1, batches_.size())) << "never given to it";
      life.acked = stored;
    }
    EXPECT_FALSE(Live(folder / "db", sound.get(), life.acked, batches_.size()).has_failed);
    const auto store = RocksDbStore::Open(folder / "db", sound.get());
    ASSERT_TRUE(store.ok()) << store.status().ToString();
    EXPECT_EQ(Text(*(*store)->Load()), texts_.back());
    if (HasFailure()) return;
  }
  // Opening, logging, syncing and closing: far fewer would mean that the disk was not asked.
  EXPECT_GT(points, 60);
  RecordProperty("points", static_cast<int>(points));
}

INSTANTIATE_TEST_SUITE_P(Disk, Failpoints,
                         ::testing::Values(DiskFault::kKill, DiskFault::kPowerCut,
                                           DiskFault::kTornCut, DiskFault::kIoError,
                                           DiskFault::kNoSpace),
                         [](const auto& info) { return std::string(Name(info.param)); });

}  // namespace
}  // namespace mega::state
