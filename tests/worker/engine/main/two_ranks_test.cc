// What two ranks do when they are not told, or not ready for, the same thing at the same time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <latch>
#include <thread>

#include "tests/worker/engine/main/scripted_worker.h"
#include "worker/engine/main/rank.h"

namespace mega::engine {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

class TwoRanksTest : public ::testing::Test {
 protected:
  // `changes` to a job that both ranks train.
  void Start(const std::function<void(v1::JobSpec&)>& changes) {
    v1::JobSpec spec = TinyJob(dir_);
    spec.mutable_parallelism()->set_data_parallel_size(2);
    changes(spec);
    for (int64_t rank = 0; rank < 2; ++rank) {
      starts_[rank] = StartOf(spec, dir_);
      starts_[rank].mutable_rank()->set_rank(rank);
      workers_[rank] = std::make_unique<ScriptedWorker>(dir_, starts_[rank],
                                                        ScriptedWorker::Options{.connects = false});
    }
    connector_ = std::jthread([this] {
      v1::TrainerMessage connect;
      for (int64_t rank = 0; rank < 2; ++rank) {
        v1::RankAddress& address = *connect.mutable_connect()->add_addresses();
        address.set_rank(rank);
        address.set_address(
            workers_[rank]->WaitFor([](const auto& m) { return m.has_ready(); }).ready().address());
      }
      for (const auto& worker : workers_) worker->Send(connect);
    });
  }

  // Builds and runs `rank`. `built` is called in between.
  absl::Status Run(
      int64_t rank, const std::function<void(Rank&)>& built = [](Rank&) {}) {
    const SystemClock clock;
    TrainerLink link({.socket = workers_[rank]->socket(), .rank = starts_[rank].rank()}, clock);
    MEGA_RETURN_IF_ERROR(link.WaitForStart(absl::Seconds(30)).status());
    MEGA_ASSIGN_OR_RETURN(const std::unique_ptr<Rank> engine, Rank::Build(starts_[rank], link));
    built(*engine);
    return engine->Run();
  }

  std::vector<int64_t> SavedSteps(int64_t rank) const {
    std::vector<int64_t> steps;
    for (const v1::EngineMessage& message : workers_[rank]->heard()) {
      if (message.has_checkpoint_part()) steps.push_back(message.checkpoint_part().step());
    }
    return steps;
  }

  testing::TempDir dir_;
  v1::StartTraining starts_[2];
  std::unique_ptr<ScriptedWorker> workers_[2];
  std::jthread connector_;
};

// The orders of two workers come at different times: here one does not come at all.
TEST_F(TwoRanksTest, ASaveAskedOfOneIsMadeByBothAfterTheSameStep) {
  constexpr int64_t kSteps = 3000;
  Start([](v1::JobSpec& spec) {
    spec.mutable_training()->set_steps(kSteps);
    spec.mutable_checkpoint()->set_interval_steps(0);
  });
  {
    std::jthread zero([this] { EXPECT_EQ(Run(0), absl::OkStatus()); });
    std::jthread one([this] { EXPECT_EQ(Run(1), absl::OkStatus()); });
    workers_[0]->WaitFor([](const auto& m) { return m.has_step() && m.step().step() == 3; });
    v1::TrainerMessage save;
    save.mutable_save()->set_cause("a node is drained");
    workers_[1]->Send(save);
  }
  const std::vector<int64_t> saved = SavedSteps(0);
  ASSERT_EQ(saved.size(), 2);
  EXPECT_GT(saved[0], 3);
  EXPECT_LT(saved[0], kSteps);
  EXPECT_EQ(saved[1], kSteps);
  EXPECT_EQ(SavedSteps(1), saved);
}

// The ranks of two nodes.
class TwoNodesTest : public TwoRanksTest {
 protected:
  // What became of both; the folders of the nodes' workers differ.
  std::vector<absl::Status> RunBoth(const std::function<void(v1::JobSpec&)>& changes) {
    Start(changes);
    std::vector<absl::Status> ended(2);
    {
      std::jthread zero([&] { ended[0] = RunOn("a", 0); });
      std::jthread one([&] { ended[1] = RunOn("b", 1); });
    }
    for (const auto& entry : fs::recursive_directory_iterator(dir_.path())) {
      EXPECT_FALSE(entry.path().filename().string().starts_with(".shared")) << entry.path();
    }
    return ended;
  }

 private:
  absl::Status RunOn(const std::string& node, int rank) {
    starts_[rank].set_run_directory(dir_ / ("worker-" + node));
    starts_[rank].mutable_plan()->mutable_ranks(0)->set_node("a");
    starts_[rank].mutable_plan()->mutable_ranks(1)->set_node("b");
    return Run(rank);
  }
};

TEST_F(TwoNodesTest, SaveIntoTheFolderThatTheyShare) {
  for (const absl::Status& ended : RunBoth([](v1::JobSpec&) {})) EXPECT_EQ(ended, absl::OkStatus());
}

// Case: such a job "succeeded", and its checkpoint could not be read.
TEST_F(TwoNodesTest, ThatShareNoFolderAreToldSoBeforeTheFirstStep) {
  const auto apart = [](v1::JobSpec& spec) { spec.mutable_checkpoint()->clear_directory(); };
  for (const absl::Status& ended : RunBoth(apart)) {
    EXPECT_EQ(ended.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(
        std::string(ended.message()),
        ::testing::HasSubstr("1 of 2 ranks do not see there what rank 0 wrote on node 'a'"));
  }
  EXPECT_TRUE(workers_[0]->steps().empty());
}

TEST_F(TwoNodesTest, ThatSaveOnlyAtIntervalsLookToo) {
  const auto apart = [](v1::JobSpec& spec) {
    spec.mutable_checkpoint()->clear_directory();
    spec.mutable_checkpoint()->set_save_on_exit(false);
    spec.mutable_checkpoint()->set_interval_steps(2);
  };
  for (const absl::Status& ended : RunBoth(apart)) {
    EXPECT_EQ(ended.code(), absl::StatusCode::kInvalidArgument) << ended;
  }
}

// Case: one rank read its weights from a slow disk, and no attempt came to its first step.
TEST_F(TwoRanksTest, TheyMayLoadFurtherApartThanACollectiveMayTake) {
  Start([](v1::JobSpec& spec) {
    spec.mutable_health()->mutable_hang()->mutable_collective_timeout()->set_seconds(1);
  });
  std::latch built(2);
  std::jthread zero(
      [&] { EXPECT_EQ(Run(0, [&](Rank&) { built.arrive_and_wait(); }), absl::OkStatus()); });
  std::jthread one([&] {
    const absl::Status status = Run(1, [&](Rank&) {
      built.arrive_and_wait();
      std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // the disk's time
    });
    EXPECT_EQ(status, absl::OkStatus());
  });
}

TEST_F(TwoRanksTest, AStopGetsARankOutOfTheWaitForAPeerThatDoesNotCome) {
  Start([](v1::JobSpec&) {});
  std::latch built(2), ended(1);
  Rank* waiting = nullptr;
  std::jthread zero([&] {
    const absl::Status status = Run(0, [&](Rank& rank) {
      waiting = &rank;
      built.arrive_and_wait();
    });
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
    ended.count_down();
  });
  std::jthread one([&] {
    (void)Run(1, [&](Rank&) {
      built.arrive_and_wait();
      waiting->Abort(absl::CancelledError("stopped"));
      ended.wait();
    });
  });
}

}  // namespace
}  // namespace mega::engine
