// The ranks with everything below them real, on a disk that refuses.
#include "worker/daemon/ranks.h"

#include <signal.h>
#include <sys/stat.h>

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/failing_readdir.h"
#include "tests/support/temp_dir.h"

namespace mega::daemon {
namespace {

using ::testing::HasSubstr;

class RanksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    mega::testing::WriteFile(folder_ / "engine", "#!/bin/sh\ntouch " + (folder_ / "ran") + "\n");
    ASSERT_EQ(chmod((folder_ / "engine").c_str(), 0755), 0);
    state_ = *StateDir::Open(folder_ / "state");
    trainer_ = *TrainerService::Start({.attached = [](const RankKey&) {},
                                       .message = [](const RankKey&, v1::EngineMessage) {},
                                       .detached = [](const RankKey&) {},
                                       .refused = [](const RankKey&, absl::Status) {}});
    exporter_ = std::make_unique<Exporter>("node-a");
    ranks_ = std::make_unique<Ranks>(
        Ranks::Options{.engine = folder_ / "engine", .devices = std::vector<v1::Device>(2)},
        Ranks::Parts{.loop = loop_,
                     .clock = clock_,
                     .state_dir = *state_,
                     .ledger = ledger_,
                     .supervisor = supervisor_,
                     .trainer = *trainer_,
                     .capture = capture_,
                     .reports = reports_,
                     .exporter = *exporter_,
                     .send = [this](v1::WorkerMessage message) { Take(std::move(message)); },
                     .may_run = [] { return true; },
                     .connected = [] { return true; },
                     .persist = [this] { return disk_; }});
  }
  void TearDown() override { loop_.Stop(); }

  static v1::StartRanks Order() {
    v1::StartRanks order;
    order.set_job_uid("job-1");
    order.set_attempt(1);
    order.set_epoch(1);
    for (int64_t rank = 0; rank < 2; ++rank) {
      order.add_ranks(rank);
      order.mutable_plan()->add_ranks()->set_device(rank);
    }
    return order;
  }

  void Take(v1::WorkerMessage message) {
    MutexLock lock(mu_);
    if (message.has_rank_exited()) exits_.push_back(message.rank_exited().exit());
    changed_.NotifyAll();
  }
  std::vector<v1::ExitStatus> AwaitExits(size_t count) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    MutexLock lock(mu_);
    while (exits_.size() < count && changed_.WaitUntil(mu_, deadline)) {
    }
    return exits_;
  }

  mega::testing::TempDir folder_;
  SystemClock clock_;
  absl::Status disk_;  // what it says to the next record
  std::unique_ptr<StateDir> state_;
  Ledger ledger_{{}};
  EventLoop loop_;
  Reports reports_{{"127.0.0.1:1"}};
  std::unique_ptr<Exporter> exporter_;
  LogCapture capture_{
      [this](const RankKey& key) { loop_.Post([this, key] { ranks_->OnLogEnd(key); }); }};
  std::unique_ptr<TrainerService> trainer_;
  Supervisor supervisor_{
      {}, [this](const RankKey& key, ProcessExit exit, bool by_worker) {
        loop_.Post([this, key, exit, by_worker] { ranks_->OnProcessExit(key, exit, by_worker); });
      }};
  std::unique_ptr<Ranks> ranks_;

  Mutex mu_;
  CondVar changed_;
  std::vector<v1::ExitStatus> exits_ MEGA_GUARDED_BY(mu_);
};

TEST_F(RanksTest, StartWhenTheirPidsAreOnDisk) {
  loop_.Post([this] { ranks_->Start(Order()); });
  ASSERT_EQ(AwaitExits(2).size(), 2u);
  EXPECT_EQ(AwaitExits(2)[0].code(), 0);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "ran"));
}

// Case: the disk was full, the ranks ran all the same, and the next incarnation did not know them.
TEST_F(RanksTest, NoneStartsUnrecorded) {
  disk_ = absl::ResourceExhaustedError("cannot write worker.json: No space left on device");
  loop_.Post([this] { ranks_->Start(Order()); });
  const auto exits = AwaitExits(2);
  ASSERT_EQ(exits.size(), 2u);
  for (const v1::ExitStatus& exit : exits) {
    EXPECT_EQ(exit.signal(), SIGKILL);
    EXPECT_TRUE(exit.killed_by_worker());
    EXPECT_THAT(exit.message(), HasSubstr("the rank was not started"));
    EXPECT_THAT(exit.message(), HasSubstr("No space left on device"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "ran"));
  EXPECT_EQ(ledger_.Record().ranks_size(), 0);
}

TEST_F(RanksTest, AWithdrawnStartIsAnsweredAndNeverHappens) {
  loop_.Post([this] { ranks_->Withdraw(Order(), "somebody cancelled the job"); });
  const auto exits = AwaitExits(2);
  ASSERT_EQ(exits.size(), 2u);
  EXPECT_NE(exits[0].code(), 0);
  EXPECT_TRUE(exits[0].killed_by_worker());
  EXPECT_EQ(exits[0].message(), "stopped before it was started: somebody cancelled the job");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "state/jobs/job-1"));
}

// Case: the disk failed in the middle of the job's folder, and the worker ended with all its ranks.
TEST_F(RanksTest, AFolderThatCannotBeReadIsTheEndOfTheRankAlone) {
  const std::string folder = *state_->RunDirectory("job-1");
  for (const char* name : {"a", "b", "c"}) mega::testing::WriteFile(folder + "/" + name, "");
  loop_.Post([this] {
    const mega::testing::FailingReaddir failing(3);
    ranks_->Start(Order());
  });
  const auto exits = AwaitExits(2);
  ASSERT_EQ(exits.size(), 2u);
  EXPECT_EQ(exits[0].code(), 127);
  EXPECT_THAT(exits[0].message(), HasSubstr("Input/output error"));
}

}  // namespace
}  // namespace mega::daemon
