#include "worker/engine/checkpoint/durable_file.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <mutex>

#include "base/atomic_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace {

std::mutex synced_mutex;
std::vector<std::string> synced;

}  // namespace

// In the place of libc's: remembers what was synced.
extern "C" int fsync(int fd) {
  char path[PATH_MAX];
  const ssize_t n =
      readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof(path) - 1);
  {
    const std::lock_guard lock(synced_mutex);
    if (n > 0) synced.emplace_back(path, static_cast<size_t>(n));
  }
  return static_cast<int>(syscall(SYS_fsync, fd));
}

namespace mega::checkpoint {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

std::vector<std::string> Synced() {
  const std::lock_guard lock(synced_mutex);
  return std::exchange(synced, {});
}

std::string RealPath(const std::string& path) { return std::filesystem::canonical(path).string(); }

// Case: the first checkpoint of a job was gone after a power loss, folder and all.
TEST(DurableFile, EveryFolderIsSyncedInTheOneAboveIt) {
  const testing::TempDir dir;
  const std::string root = RealPath(dir.path());
  Synced();
  ASSERT_EQ(MakeFolderDurably(root + "/a/b//c/"), absl::OkStatus());
  EXPECT_TRUE(std::filesystem::is_directory(root + "/a/b/c"));
  EXPECT_THAT(Synced(), IsSupersetOf({root, root + "/a", root + "/a/b"}));
  ASSERT_EQ(MakeFolderDurably(root + "/a/b/c"), absl::OkStatus());  // there already
}

TEST(DurableFile, AFileInAFoldersPlaceIsNamed) {
  const testing::TempDir dir;
  testing::WriteFile(dir / "file", "");
  EXPECT_THAT(std::string(MakeFolderDurably(dir / "file").message()), HasSubstr("is not a folder"));
  EXPECT_THAT(std::string(MakeFolderDurably(dir / "file/below").message()),
              HasSubstr("file/below"));
}

TEST(DurableFile, AFileAndItsFolderAreSynced) {
  const testing::TempDir dir;
  const std::string root = RealPath(dir.path());
  Synced();
  ASSERT_EQ(WriteFileAtomically(root + "/file", "text"), absl::OkStatus());
  const std::vector<std::string> seen = Synced();
  EXPECT_THAT(seen, Contains(root + "/file.tmp"));
  EXPECT_EQ(seen.back(), root);
  EXPECT_EQ(testing::ReadFile(root + "/file"), "text");
}

}  // namespace
}  // namespace mega::checkpoint
