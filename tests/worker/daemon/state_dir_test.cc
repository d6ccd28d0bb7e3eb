#include "worker/daemon/state_dir.h"

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

TEST(StateDir, AHostileUidMakesNoFolder) {
  mega::testing::TempDir folder;
  const auto state = *StateDir::Open(folder / "state");
  for (const char* uid : {"", "..", "../../x", "a/b", "a\nb", "/etc"}) {
    EXPECT_FALSE(state->RunDirectory(uid).ok()) << uid;
  }
  EXPECT_FALSE(state->RunDirectory(std::string(200, 'a')).ok());
  EXPECT_TRUE(state->RunDirectory("3f2a-b_C").ok());
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
