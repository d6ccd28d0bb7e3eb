// What retention wants gone goes, whatever the disk and the worker do in between.
#include "worker/daemon/removals.h"

#include <filesystem>
#include <future>

#include "gmock/gmock.h"
#include "tests/support/failing_readdir.h"
#include "tests/worker/daemon/daemon_fixture.h"
#include "worker/daemon/checkpoint_removal.h"

namespace mega::daemon {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

v1::DeleteCheckpoint Removal(const std::string& folder, int64_t step) {
  v1::DeleteCheckpoint order;
  order.set_job_uid(kJob);
  order.set_step(step);
  order.set_directory(folder);
  return order;
}

// Checkpoints on a disk that answers each look with an error until Mount().
class Disk {
 public:
  Disk() { fs::create_symlink("mounted", folder_ / "mounted"); }  // ELOOP
  void Mount() const {
    fs::create_directory_symlink(folder_.path(), folder_ / "target");
    fs::rename(folder_ / "target", folder_ / "mounted");
  }
  // As a rank names the folder.
  std::string Put(int64_t step) const {
    const std::string name = fmt::format("step-{:08d}", step);
    fs::create_directory(folder_ / name);
    mega::testing::WriteFile(folder_ / name + "/manifest.json", "{}");
    for (int rank = 0; rank < 3; ++rank) {
      mega::testing::WriteFile(folder_ / name + fmt::format("/a1-r{:05}.safetensors", rank), "x");
    }
    return folder_ / "mounted/" + name;
  }
  bool Holds(int64_t step) const { return fs::exists(folder_ / fmt::format("step-{:08d}", step)); }

 private:
  mega::testing::TempDir folder_;
};

// Case: the iterator threw in the middle of a folder on NFS, and the worker ended with its ranks.
TEST(CheckpointRemoval, ADiskThatFailsInTheMiddleIsToldAndTheNextTryFinishes) {
  const Disk disk;
  disk.Mount();
  const v1::DeleteCheckpoint order = Removal(disk.Put(10), 10);
  for (int entries = 0; entries < 5; ++entries) {
    const mega::testing::FailingReaddir failing(entries);
    const absl::Status status = RemoveCheckpoint(order);
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("step-00000010"));
  }
  EXPECT_EQ(RemoveCheckpoint(order), absl::OkStatus());
  EXPECT_FALSE(disk.Holds(10));
}

TEST(CheckpointRemoval, WhatCannotBeLookedAtMayBeThereTheNextTime) {
  const Disk disk;
  const v1::DeleteCheckpoint order = Removal(disk.Put(10), 10);
  EXPECT_TRUE(absl::IsUnavailable(RemoveCheckpoint(order)));
  disk.Mount();
  EXPECT_EQ(RemoveCheckpoint(order), absl::OkStatus());
}

class RemovalsTest : public ::testing::Test {
 protected:
  void TearDown() override {
    loop_.Stop();
    chores_.Stop();
  }
  Removals& Open() {
    removals_ = std::make_unique<Removals>(state_.path(), loop_, chores_, kQuick);
    OnLoop([&] { removals_->Load(); });
    return *removals_;
  }
  void OnLoop(const std::function<void()>& task) {
    std::promise<void> done;
    loop_.Post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }
  int64_t Waiting() {
    int64_t waiting = 0;
    OnLoop([&] { waiting = removals_->waiting(); });
    return waiting;
  }
  std::string File() const { return mega::testing::ReadFile(state_ / "removals.jsonl"); }

  static constexpr Removals::Options kQuick{.first_retry = absl::Milliseconds(1),
                                            .last_retry = absl::Milliseconds(4)};
  mega::testing::TempDir state_;
  EventLoop loop_;
  EventLoop chores_;
  std::unique_ptr<Removals> removals_;
};

TEST_F(RemovalsTest, WhatTheDiskRefusesIsTriedUntilItIsGone) {
  const Disk disk;
  Open();
  OnLoop([&] {
    EXPECT_EQ(removals_->Keep({Removal(disk.Put(10), 10)}), absl::OkStatus());
    EXPECT_EQ(removals_->Keep({Removal(disk.Put(20), 20)}), absl::OkStatus());
    removals_->CarryOut();
  });
  EXPECT_THAT(File(), HasSubstr("step-00000010"));
  EXPECT_EQ(Waiting(), 2);
  disk.Mount();
  EXPECT_TRUE(Eventually([&] { return Waiting() == 0; }));
  EXPECT_FALSE(disk.Holds(10));
  EXPECT_FALSE(disk.Holds(20));
  EXPECT_TRUE(Eventually([&] { return File().empty(); }));
}

TEST_F(RemovalsTest, ThatNoTryWouldChangeAreNotTriedAgain) {
  Open();
  OnLoop([&] {
    EXPECT_EQ(removals_->Keep({Removal(state_ / "not-a-step", 10)}), absl::OkStatus());
    removals_->CarryOut();
  });
  EXPECT_TRUE(Eventually([&] { return Waiting() == 0; }));
}

TEST_F(RemovalsTest, TheNextIncarnationGoesOnFromWhatItCanRead) {
  const Disk disk;
  Open();
  OnLoop([&] {
    for (int i = 0; i < 2; ++i) {  // the same one again is one
      EXPECT_EQ(removals_->Keep({Removal(disk.Put(10), 10)}), absl::OkStatus());
    }
  });
  const std::string good = File();
  EXPECT_EQ(std::count(good.begin(), good.end(), '\n'), 1);
  mega::testing::WriteFile(state_ / "removals.jsonl",
                           "{\"step\": \"ten\n" + good + "{\"directory\": \"/\"}\nnonsense");
  disk.Mount();
  Open();
  EXPECT_EQ(Waiting(), 1);
  OnLoop([&] { removals_->CarryOut(); });
  EXPECT_TRUE(Eventually([&] { return Waiting() == 0; }));
  EXPECT_FALSE(disk.Holds(10));
}

TEST_F(RemovalsTest, AreBoundedWhateverIsOrdered) {
  Open();
  OnLoop([&] {
    EXPECT_EQ(removals_->Keep({Removal("/" + std::string(1 << 20, 'x'), 10)}), absl::OkStatus());
    EXPECT_EQ(removals_->waiting(), 0);
    v1::DeleteCheckpoint no_uid = Removal("/nowhere/step-00000010", 10);
    no_uid.set_job_uid("..");
    EXPECT_EQ(removals_->Keep({no_uid}), absl::OkStatus());
    EXPECT_EQ(removals_->waiting(), 0);
  });
}

class RemovalOrders : public DaemonTest {
 protected:
  bool OrderAndAwaitAck(const v1::DeleteCheckpoint& removal) {
    v1::Command command;
    *command.mutable_delete_checkpoint() = removal;
    const int64_t seq = coordinator_.Order(command);
    return coordinator_.Await([&](const Heard& heard) {
      return std::any_of(heard.messages.begin(), heard.messages.end(),
                         [&](const auto& message) { return message.command_ack().seq() == seq; });
    });
  }
  const Disk disk_;
};

// Case: acked and not carried out, the order was forgotten with the worker.
TEST_F(RemovalOrders, OutliveTheWorkerThatHasAckedThem) {
  ASSERT_TRUE(OrderAndAwaitAck(Removal(disk_.Put(10), 10)));
  daemon_.reset();
  disk_.Mount();
  daemon_ = *Daemon::Start(MakeOptions(), clock_);
  EXPECT_TRUE(Eventually([&] { return !disk_.Holds(10); }));
}

// Case: a removal that failed was logged, and the checkpoint stayed for ever.
TEST_F(RemovalOrders, AreTriedAgainAndCountedMeanwhile) {
  ASSERT_TRUE(OrderAndAwaitAck(Removal(disk_.Put(10), 10)));
  EXPECT_TRUE(Eventually([&] {
    return Scrape(daemon_->metrics_address()).find("mega_worker_checkpoints_to_remove 1") !=
           std::string::npos;
  }));
  disk_.Mount();
  EXPECT_TRUE(Eventually([&] { return !disk_.Holds(10); }));
}

}  // namespace
}  // namespace mega::daemon
