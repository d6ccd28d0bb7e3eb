#include "worker/engine/checkpoint/leftovers.h"

#include <filesystem>
#include <set>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "manifest/kept.h"
#include "tests/support/failing_readdir.h"
#include "tests/support/temp_dir.h"
#include "worker/engine/checkpoint/writer.h"

namespace mega::checkpoint {
namespace {

namespace fs = std::filesystem;
using mega::testing::TempDir;
using ::testing::ElementsAre;

class LeftoversTest : public ::testing::Test {
 protected:
  void Put(int64_t step, const std::string& name) {
    fs::create_directories(StepFolder(folder_.path(), step));
    mega::testing::WriteFile(StepFolder(folder_.path(), step) + "/" + name, "1234");
  }
  std::set<std::string> Files(int64_t step) const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(StepFolder(folder_.path(), step))) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }
  bool Exists(int64_t step) const { return fs::exists(StepFolder(folder_.path(), step)); }

  TempDir folder_;
};

TEST_F(LeftoversTest, FilesOfEarlierAttemptsAfterTheNewestCommitGoWithTheirFolder) {
  Put(30, "a1-r00000.safetensors");
  Put(30, "a2-r00001.safetensors.tmp");
  Put(100000000, "a1-r00000.safetensors");
  const Leftovers removed = RemoveLeftovers(folder_.path(), 20, 3, 0, 1);
  EXPECT_EQ(removed.files, 3);
  EXPECT_EQ(removed.bytes, 12);
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(LeftoversTest, WhatIsCommittedOrNotOursStays) {
  Put(10, "a1-r00000.safetensors");  // may be committed, its manifest unwritten
  Put(20, "a1-r00000.safetensors");
  Put(30, "a1-r00000.safetensors");
  Put(30, "manifest.json");
  Put(40, "a3-r00000.safetensors");  // of this attempt
  Put(40, "a4-r00000.safetensors");
  const std::set<std::string> strange = {"notes.txt",
                                         "a1-r00000.safetensors.bak",
                                         "a1-r00000",
                                         "a-r00000.safetensors",
                                         "a1-rx.safetensors",
                                         "model-a1-r00000.safetensors",
                                         "a99999999999999999999-r00000.safetensors"};
  for (const std::string& name : strange) Put(50, name);
  fs::create_directories(StepFolder(folder_.path(), 50) + "/a1-r00001.safetensors");
  fs::create_directories(folder_ / "step-x");
  mega::testing::WriteFile(folder_ / "step-x/a1-r00000.safetensors", "");
  mega::testing::WriteFile(folder_ / "step-00000060", "a file");
  const std::string elsewhere = folder_ / "elsewhere";
  fs::create_directories(elsewhere);
  mega::testing::WriteFile(elsewhere + "/a1-r00000.safetensors", "");
  fs::create_directory_symlink(elsewhere, folder_ / "step-00000070");
  EXPECT_EQ(RemoveLeftovers(folder_.path(), 20, 3, 0, 1).files, 0);
  EXPECT_THAT(Files(10), ElementsAre("a1-r00000.safetensors"));
  EXPECT_THAT(Files(20), ElementsAre("a1-r00000.safetensors"));
  EXPECT_EQ(Files(30).size(), 2u);
  EXPECT_EQ(Files(40).size(), 2u);
  EXPECT_EQ(Files(50).size(), strange.size() + 1);
  EXPECT_TRUE(fs::exists(folder_ / "step-x/a1-r00000.safetensors"));
  EXPECT_TRUE(fs::exists(elsewhere + "/a1-r00000.safetensors"));
}

TEST_F(LeftoversTest, RanksShareTheWorkWhateverWroteIt) {
  for (int rank = 0; rank < 8; ++rank) Put(5, fmt::format("a1-r{:05}.safetensors", rank));
  EXPECT_EQ(RemoveLeftovers(folder_.path(), 0, 2, 0, 3).files, 3);
  EXPECT_EQ(RemoveLeftovers(folder_.path(), 0, 2, 1, 3).files, 3);
  EXPECT_TRUE(Exists(5));
  EXPECT_EQ(RemoveLeftovers(folder_.path(), 0, 2, 2, 3).files, 2);
  EXPECT_FALSE(Exists(5));
}

TEST_F(LeftoversTest, WhatACommitHasOvertakenGoesButForWhatIsKept) {
  for (const int64_t step : {10, 20, 30, 40, 50}) Put(step, "a1-r00000.safetensors");
  Put(10, "manifest.json");  // the job was taken back behind it once, and somebody may load it
  Put(30, "a3-r00000.safetensors");
  const Leftovers removed = RemoveOvertaken(folder_.path(), {20, 40}, 3, 0, 1);
  EXPECT_EQ(removed.files, 1);
  EXPECT_EQ(Files(10).size(), 2u);
  EXPECT_EQ(Files(20).size(), 1u);
  EXPECT_THAT(Files(30), ElementsAre("a3-r00000.safetensors"));
  EXPECT_EQ(Files(40).size(), 1u);
  EXPECT_EQ(Files(50).size(), 1u);

  EXPECT_EQ(RemoveOvertaken(folder_.path(), {}, 4, 0, 1).files, 0);
  EXPECT_EQ(RemoveOvertaken(folder_.path(), {50}, 4, 1, 2).files, 0);
  EXPECT_EQ(RemoveOvertaken(folder_.path(), {50}, 4, 0, 2).files, 3);
  EXPECT_TRUE(Exists(10));
  EXPECT_FALSE(Exists(20) || Exists(30) || Exists(40));
}

// What lies before the first of a full list may be kept, too.
TEST_F(LeftoversTest, OfAFullListNothingFollowsForStepsBeforeItsFirst) {
  std::set<int64_t> kept;
  for (int64_t i = 0; i < static_cast<int64_t>(manifest::kMostTold); ++i) kept.insert(20 + 10 * i);
  Put(10, "a1-r00000.safetensors");
  Put(25, "a1-r00000.safetensors");
  EXPECT_EQ(RemoveOvertaken(folder_.path(), kept, 2, 0, 1).files, 1);
  EXPECT_TRUE(Exists(10));
  kept.erase(20);
  EXPECT_EQ(RemoveOvertaken(folder_.path(), kept, 2, 0, 1).files, 1);
  EXPECT_FALSE(Exists(10));
}

TEST_F(LeftoversTest, NoFolderIsNothing) {
  EXPECT_EQ(RemoveLeftovers(folder_ / "none", 0, 2, 0, 1).files, 0);
  EXPECT_THAT(fs::directory_iterator(folder_.path()) == fs::directory_iterator(), true);
}

// Case: the disk failed in the middle of the folder, and the rank ended without a word.
TEST_F(LeftoversTest, WhatCannotBeListedStaysForTheNextAttempt) {
  for (int rank = 0; rank < 4; ++rank) Put(30, fmt::format("a1-r{:05}.safetensors", rank));
  for (int entries = 0; entries < 10; ++entries) {
    const mega::testing::FailingReaddir failing(entries);
    EXPECT_EQ(RemoveLeftovers(folder_.path(), 20, 3, 0, 1).files, 0) << entries;
  }
  EXPECT_EQ(RemoveLeftovers(folder_.path(), 20, 3, 0, 1).files, 4);
  EXPECT_FALSE(Exists(30));
}

}  // namespace
}  // namespace mega::checkpoint
