// What retention wants gone goes, whatever the disk and the worker do in between.
#include "worker/daemon/removals.h"

#include <filesystem>
#include <future>
#include <set>

#include "gmock/gmock.h"
#include "manifest/manifest_file.h"
#include "tests/support/failing_readdir.h"
#include "tests/worker/daemon/daemon_fixture.h"
#include "worker/daemon/checkpoint_removal.h"

namespace mega::daemon {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
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
  // What somebody else writes there.
  void Write(int64_t step, const std::string& name, const std::string& content = "y") const {
    const std::string folder = folder_ / fmt::format("step-{:08d}", step);
    fs::create_directory(folder);
    mega::testing::WriteFile(folder + "/" + name, content);
  }
  bool Holds(int64_t step) const { return fs::exists(folder_ / fmt::format("step-{:08d}", step)); }
  std::set<std::string> Files(int64_t step) const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_ / fmt::format("step-{:08d}", step))) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }

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

// Of the checkpoint that an attempt of the job saved, its epoch being ten times its number.
v1::DeleteCheckpoint RemovalOf(int64_t attempt, const std::string& folder, int64_t step) {
  v1::DeleteCheckpoint order = Removal(folder, step);
  order.set_attempt(attempt);
  order.set_epoch(10 * attempt);
  return order;
}

// Of one whole tensor in the file.
std::string ManifestOf(int64_t attempt, int64_t step, const std::string& file,
                       const std::string& job_uid = kJob) {
  v1::Manifest manifest;
  manifest.set_version(1);
  manifest.set_job_uid(job_uid);
  manifest.set_attempt(attempt);
  manifest.set_epoch(10 * attempt);
  manifest.set_step(step);
  manifest.mutable_state()->set_step(step);
  manifest.add_files()->set_name(file);
  v1::TensorInfo& tensor = *manifest.add_tensors();
  tensor.set_name("w");
  tensor.set_dtype("F32");
  tensor.add_global_shape(1);
  v1::TensorSlice& slice = *manifest.add_slices();
  slice.set_tensor("w");
  slice.set_file(file);
  slice.add_offset(0);
  slice.add_shape(1);
  return manifest::PrintManifest(manifest);
}

TEST(CheckpointRemoval, ThatNamesWhoSavedItTakesTheWholeFolder) {
  const Disk disk;
  disk.Mount();
  for (const bool has_manifest : {true, false}) {
    const v1::DeleteCheckpoint order =
        RemovalOf(2, disk.Put(10), 10);  // and leftovers of attempt 1
    disk.Write(10, "a2-r00000.safetensors");
    disk.Write(10, "a2-r00001.safetensors.tmp");
    disk.Write(10, "manifest.json",
               has_manifest ? ManifestOf(2, 10, "a2-r00000.safetensors") : "{");
    EXPECT_EQ(RemoveCheckpoint(order), absl::OkStatus());
    EXPECT_FALSE(disk.Holds(10));
    EXPECT_EQ(RemoveCheckpoint(order), absl::OkStatus()) << "it is gone already";
  }
}

// Case: the job went back and saved the step again, and then a worker carried out what it had been
// told before.
TEST(CheckpointRemoval, WhatALaterAttemptHasSavedThereStays) {
  const Disk disk;
  disk.Mount();
  const v1::DeleteCheckpoint order = RemovalOf(1, disk.Put(10), 10);
  disk.Write(10, "a3-r00000.safetensors");
  disk.Write(10, "manifest.json", ManifestOf(3, 10, "a3-r00000.safetensors"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(RemoveCheckpoint(order), absl::OkStatus());
    EXPECT_THAT(disk.Files(10), ElementsAre("a3-r00000.safetensors", "manifest.json"));
  }
  EXPECT_EQ(RemoveCheckpoint(RemovalOf(3, order.directory(), 10)), absl::OkStatus());
  EXPECT_FALSE(disk.Holds(10));
}

// A node that does not share its folder with rank 0 sees no manifest, and neither does anybody
// before the commit.
TEST(CheckpointRemoval, WithoutAManifestTheNamesOfTheSlicesSayWhoseTheyAre) {
  const Disk disk;
  disk.Mount();
  const v1::DeleteCheckpoint order = RemovalOf(1, disk.Put(10), 10);
  fs::remove(order.directory() + "/manifest.json");
  disk.Write(10, "a2-r00001.safetensors.tmp");
  disk.Write(10, "manifest.json.tmp");
  EXPECT_EQ(RemoveCheckpoint(order), absl::OkStatus());
  EXPECT_THAT(disk.Files(10), ElementsAre("a2-r00001.safetensors.tmp", "manifest.json.tmp"));
}

TEST(CheckpointRemoval, ItsOwnManifestGoesWhileALaterAttemptSavesThere) {
  const Disk disk;
  disk.Mount();
  const v1::DeleteCheckpoint order = RemovalOf(1, disk.Put(10), 10);
  disk.Write(10, "manifest.json", ManifestOf(1, 10, "a1-r00000.safetensors"));
  disk.Write(10, "a2-r00001.safetensors.tmp");
  EXPECT_EQ(RemoveCheckpoint(order), absl::OkStatus());
  EXPECT_THAT(disk.Files(10), ElementsAre("a2-r00001.safetensors.tmp"));
}

TEST(CheckpointRemoval, ThatOfAnotherJobStays) {
  const Disk disk;
  disk.Mount();
  const v1::DeleteCheckpoint order = RemovalOf(1, disk.Put(10), 10);
  disk.Write(10, "manifest.json", ManifestOf(1, 10, "a1-r00001.safetensors", "another"));
  const std::set<std::string> files = disk.Files(10);
  EXPECT_THAT(RemoveCheckpoint(order).message(), HasSubstr("of another job"));
  EXPECT_EQ(disk.Files(10), files);
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

// A line of release 0.1 means whatever lies there; one of this release says whose it means.
TEST_F(RemovalsTest, AreReadWithAndWithoutTheAttemptThatTheyMean) {
  const Disk disk;
  disk.Mount();
  const std::string old_line =
      fmt::format(R"({{"job_uid":"{}","step":"10","directory":"{}"}})", kJob, disk.Put(10));
  mega::testing::WriteFile(state_ / "removals.jsonl", old_line + "\n");
  disk.Write(10, "a3-r00000.safetensors");
  const v1::DeleteCheckpoint order = RemovalOf(2, disk.Put(20), 20);
  disk.Write(20, "manifest.json", ManifestOf(2, 20, "a2-r00000.safetensors"));
  disk.Write(20, "a3-r00000.safetensors");
  Open();
  OnLoop([&] { EXPECT_EQ(removals_->Keep({order}), absl::OkStatus()); });
  EXPECT_THAT(File(), HasSubstr(R"("epoch":"20")"));
  Open();
  EXPECT_EQ(Waiting(), 2);
  OnLoop([&] { removals_->CarryOut(); });
  EXPECT_TRUE(Eventually([&] { return Waiting() == 0; }));
  EXPECT_FALSE(disk.Holds(10));
  EXPECT_THAT(disk.Files(20), ElementsAre("a3-r00000.safetensors"));
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
