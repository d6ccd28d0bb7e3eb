#include "worker/daemon/state_dir.h"

#include <signal.h>
#include <sys/resource.h>

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"
#include "worker/daemon/checkpoint_removal.h"

namespace mega::daemon {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

TEST(StateDir, TheRecordComesBack) {
  mega::testing::TempDir folder;
  const auto state = *StateDir::Open(folder / "state");
  EXPECT_EQ(state->ReadRecord()->last_command_seq(), 0);
  v1::WorkerRecord record;
  record.set_last_command_seq(7);
  record.add_exited()->mutable_exit()->set_stderr_tail("\xff\x00 bytes");
  ASSERT_TRUE(state->WriteRecord(record).ok());
  EXPECT_EQ(state->ReadRecord()->SerializeAsString(), record.SerializeAsString());
}

TEST(StateDir, AFullDiskLeavesTheLastRecordAndNothingElse) {
  mega::testing::TempDir folder;
  const auto state = *StateDir::Open(folder / "state");
  v1::WorkerRecord record;
  record.set_last_command_seq(7);
  ASSERT_TRUE(state->WriteRecord(record).ok());
  record.set_last_command_seq(8);
  record.set_boot_id(std::string(64 << 10, 'x'));
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const absl::Status status = state->WriteRecord(record);
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("worker.json"));
  EXPECT_EQ(state->ReadRecord()->last_command_seq(), 7);
  EXPECT_FALSE(fs::exists(folder / "state/worker.json.tmp"));
}

TEST(StateDir, ASecondWorkerIsToldToTakeAnotherFolder) {
  mega::testing::TempDir folder;
  const auto first = *StateDir::Open(folder / "state");
  const auto second = StateDir::Open(folder / "state");
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("another --state-dir"));
}

TEST(StateDir, ABrokenRecordIsAnErrorThatNamesTheFile) {
  mega::testing::TempDir folder;
  const auto state = *StateDir::Open(folder / "state");
  mega::testing::WriteFile(folder / "state/worker.json", "{\"last_command_seq\": \"seven");
  const auto record = state->ReadRecord();
  ASSERT_FALSE(record.ok());
  EXPECT_THAT(std::string(record.status().message()), HasSubstr("worker.json"));
}

TEST(StateDir, ARecordThatCannotBeLookedAtIsNoEmptyOne) {
  mega::testing::TempDir folder;
  const auto state = *StateDir::Open(folder / "state");
  fs::create_symlink("worker.json", folder / "state/worker.json");  // ELOOP
  EXPECT_THAT(std::string(state->ReadRecord().status().message()), HasSubstr("worker.json"));
}

TEST(StateDir, AHostileUidMakesNoFolder) {
  mega::testing::TempDir folder;
  const auto state = *StateDir::Open(folder / "state");
  for (const char* uid : {"", "..", "../../x", "a/b", "a\nb", "/etc"}) {
    EXPECT_FALSE(state->RunDirectory(uid).ok()) << uid;
  }
  EXPECT_FALSE(state->RunDirectory(std::string(200, 'a')).ok());
  EXPECT_TRUE(state->RunDirectory("3f2a-b_C").ok());
}

// Case: the clock of a node without a battery stood in the past after a reboot, and the coordinator
// took the new worker for an old one.
TEST(StateDir, AnIncarnationIsAboveThoseBeforeWhateverTheClockSays) {
  const absl::Time now = absl::FromUnixSeconds(1'700'000'000);
  EXPECT_EQ(*NextIncarnation(0, now), absl::ToUnixNanos(now));
  EXPECT_EQ(*NextIncarnation(absl::ToUnixNanos(now), now), absl::ToUnixNanos(now) + 1);
  const int64_t later = absl::ToUnixNanos(now + absl::Hours(24));
  EXPECT_EQ(*NextIncarnation(later, now), later + 1);
  EXPECT_EQ(*NextIncarnation(0, absl::FromUnixSeconds(-5)), 1);
  EXPECT_EQ(*NextIncarnation(-7, absl::FromUnixSeconds(5)), 5'000'000'000);
  EXPECT_FALSE(NextIncarnation(INT64_MAX, now).ok());
}

// A folder that is given relative to one that is not UTF-8, for one.
TEST(StateDir, APathThatIsNotUtf8IsRefused) {
  mega::testing::TempDir folder;
  const auto opened = StateDir::Open(folder / "s\xFF");
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(fs::exists(folder / "s\xFF"));
}

v1::DeleteCheckpoint Removal(const std::string& folder, int64_t step) {
  v1::DeleteCheckpoint order;
  order.set_directory(folder);
  order.set_step(step);
  return order;
}

TEST(CheckpointRemoval, TakesTheFilesAndTheFolder) {
  mega::testing::TempDir folder;
  fs::create_directory(folder / "step-00000010");
  mega::testing::WriteFile(folder / "step-00000010/manifest.json", "{}");
  mega::testing::WriteFile(folder / "step-00000010/a1-r0.safetensors", "x");
  EXPECT_TRUE(RemoveCheckpoint(Removal(folder / "step-00000010", 10)).ok());
  EXPECT_FALSE(fs::exists(folder / "step-00000010"));
  EXPECT_TRUE(RemoveCheckpoint(Removal(folder / "step-00000010", 10)).ok());  // gone already
}

TEST(CheckpointRemoval, RefusesWhatIsNoCheckpointOfThatStep) {
  mega::testing::TempDir folder;
  fs::create_directories(folder / "step-00000010/inner");
  EXPECT_FALSE(RemoveCheckpoint(Removal(folder / "step-00000010", 11)).ok());
  EXPECT_FALSE(RemoveCheckpoint(Removal(folder.path(), 10)).ok());
  EXPECT_FALSE(RemoveCheckpoint(Removal("step-00000010", 10)).ok());
  EXPECT_FALSE(RemoveCheckpoint(Removal(folder / "step-00000010", 10)).ok());  // holds a folder
  EXPECT_TRUE(fs::exists(folder / "step-00000010/inner"));
  fs::create_directory_symlink(folder.path(), folder / "step-00000012");
  EXPECT_FALSE(RemoveCheckpoint(Removal(folder / "step-00000012", 12)).ok());
}

}  // namespace
}  // namespace mega::daemon
