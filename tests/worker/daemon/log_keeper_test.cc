#include "worker/daemon/log_keeper.h"

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace mega::daemon {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Uids(const std::vector<JobLogs>& logs) {
  std::vector<std::string> uids;
  for (const JobLogs& one : logs) uids.push_back(one.job_uid);
  return uids;
}

JobLogs Written(const std::string& uid, int64_t second, int64_t bytes) {
  return {.job_uid = uid, .bytes = bytes, .written = absl::FromUnixSeconds(second)};
}

TEST(LogKeeper, KnowsALogByItsName) {
  for (const char* name : {"a1-r0.log", "a12-r345.log", "a1-r0.log.0", "a1-r0.log.16777216"}) {
    EXPECT_TRUE(IsLogName(name)) << name;
  }
  for (const char* name :
       {"", "a", "a1", "a-r0.log", "a1-r.log", "a1-r0", "a1-r0.log.", "a1-r0.log.x", "a1-r0.log2",
        "xa1-r0.log", "a1-r0.logs", "checkpoints", "a1-r00000.safetensors", "core", ".", ".."}) {
    EXPECT_FALSE(IsLogName(name)) << name;
  }
}

TEST(LogKeeper, TheOldestGoWhileThereAreTooManyBytes) {
  const std::vector<JobLogs> logs = {Written("b", 2, 10), Written("d", 4, 10), Written("a", 1, 10),
                                     Written("c", 3, 10)};
  EXPECT_THAT(Uids(LogsBeyond(logs, {}, {.bytes = 25})), ElementsAre("a", "b"));
  EXPECT_THAT(Uids(LogsBeyond(logs, {}, {.bytes = 40})), IsEmpty());
}

TEST(LogKeeper, AndWhileThereAreTooManyJobs) {
  const std::vector<JobLogs> logs = {Written("a", 1, 0), Written("b", 2, 0), Written("c", 3, 0)};
  EXPECT_THAT(Uids(LogsBeyond(logs, {}, {.jobs = 2})), ElementsAre("a"));
}

TEST(LogKeeper, ALiveJobStaysHoweverOldAndCounts) {
  const std::vector<JobLogs> logs = {Written("a", 1, 20), Written("b", 2, 10), Written("c", 3, 10)};
  EXPECT_THAT(Uids(LogsBeyond(logs, {"a"}, {.bytes = 30})), ElementsAre("b"));
}

TEST(LogKeeper, TheNewestStaysHoweverLarge) {
  EXPECT_THAT(LogsBeyond({Written("a", 1, 100)}, {}, {.bytes = 1, .jobs = 0}), IsEmpty());
}

class LogFolderTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text = "12345") {
    fs::create_directories(fs::path(folder_ / path).parent_path());
    mega::testing::WriteFile(folder_ / path, text);
  }
  bool Exists(const std::string& path) { return fs::exists(folder_ / path); }

  mega::testing::TempDir folder_;
};

TEST_F(LogFolderTest, LogsAreCountedAndRemovedWithTheirFolder) {
  Write("jobs/one/a1-r0.log");
  Write("jobs/one/a1-r0.log.0");
  const std::vector<JobLogs> logs = ListLogs(folder_.path());
  ASSERT_THAT(Uids(logs), ElementsAre("one"));
  EXPECT_EQ(logs[0].bytes, 10);
  EXPECT_EQ(RemoveLogs(folder_.path(), "one"), 10);
  EXPECT_FALSE(Exists("jobs/one"));
  EXPECT_THAT(ListLogs(folder_.path()), IsEmpty());
}

TEST_F(LogFolderTest, WhatIsNoLogStays) {
  Write("jobs/one/a1-r0.log");
  Write("jobs/one/checkpoints/one-1/step-10/a1-r00000.safetensors");
  Write("jobs/one/core");
  EXPECT_EQ(RemoveLogs(folder_.path(), "one"), 5);
  EXPECT_FALSE(Exists("jobs/one/a1-r0.log"));
  EXPECT_TRUE(Exists("jobs/one/checkpoints/one-1/step-10/a1-r00000.safetensors"));
  EXPECT_TRUE(Exists("jobs/one/core"));
  EXPECT_THAT(ListLogs(folder_.path()), IsEmpty());
}

TEST_F(LogFolderTest, NoLinkIsFollowedOutOfTheFolder) {
  Write("elsewhere/a1-r0.log");
  fs::create_directories(folder_ / "jobs/two");
  fs::create_directory_symlink(folder_ / "elsewhere", folder_ / "jobs/one");
  fs::create_symlink(folder_ / "elsewhere/a1-r0.log", folder_ / "jobs/two/a1-r0.log");
  EXPECT_THAT(ListLogs(folder_.path()), IsEmpty());
  for (const char* uid : {"one", "two", "../elsewhere", "..", ".", ""}) {
    EXPECT_EQ(RemoveLogs(folder_.path(), uid), 0) << uid;
  }
  EXPECT_TRUE(Exists("elsewhere/a1-r0.log"));
}

}  // namespace
}  // namespace mega::daemon
