// The kernel removes a group as any folder: not while something is in it.
#include "worker/daemon/cgroup.h"

#include <filesystem>

#include "gtest/gtest.h"
#include "tests/support/failing_readdir.h"
#include "tests/support/temp_dir.h"

namespace mega::daemon {
namespace {

namespace fs = std::filesystem;

TEST(Cgroup, WhatDeadWorkersOfTheSameStateFolderLeftEmptyIsRemoved) {
  const mega::testing::TempDir folder;
  const auto make = [&](const std::string& group) { fs::create_directories(folder / group); };
  make(CgroupName("mine", 7) + "/job-1.1.0");
  make(CgroupName("mine", 8));
  make(CgroupName("mine", 9));                       // this worker's
  make(CgroupName("mine", 6) + "/job-1.1.0/alive");  // something is left in it
  make(CgroupName("theirs", 7));
  make("mega-worker-4711");
  make("mega-worker-mine-x");
  fs::create_directories(folder / "elsewhere/empty");
  fs::create_directory_symlink(folder / "elsewhere", folder / CgroupName("mine", 5));

  EXPECT_EQ(RemoveDeadGroups(folder.path(), "mine", 9), 2);

  EXPECT_FALSE(fs::exists(folder / CgroupName("mine", 7)));
  EXPECT_FALSE(fs::exists(folder / CgroupName("mine", 8)));
  for (const std::string& group :
       {CgroupName("mine", 9), CgroupName("mine", 6) + "/job-1.1.0/alive", CgroupName("theirs", 7),
        std::string("mega-worker-4711"), std::string("mega-worker-mine-x"),
        std::string("elsewhere/empty")}) {
    EXPECT_TRUE(fs::exists(folder / group)) << group;
  }
}

TEST(Cgroup, AFolderThatIsNotThereHoldsNone) {
  EXPECT_EQ(RemoveDeadGroups("/nowhere", "mine", 9), 0);
}

TEST(Cgroup, WhatCannotBeListedStays) {
  const mega::testing::TempDir folder;
  for (int i = 1; i < 4; ++i) fs::create_directories(folder / CgroupName("mine", i) + "/job-1.1.0");
  for (int entries = 0; entries < 12; ++entries) {
    const mega::testing::FailingReaddir failing(entries);
    RemoveDeadGroups(folder.path(), "mine", 9);
  }
  RemoveDeadGroups(folder.path(), "mine", 9);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

}  // namespace
}  // namespace mega::daemon
