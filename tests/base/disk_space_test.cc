#include "base/disk_space.h"

#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace mega {
namespace {

TEST(DiskSpace, IsThatOfTheFileSystemBelowThePath) {
  const mega::testing::TempDir folder;
  const std::optional<DiskSpace> here = DiskSpaceAt(folder.path());
  ASSERT_TRUE(here.has_value());
  EXPECT_GT(here->total_bytes, 0);
  EXPECT_GE(here->free_bytes, 0);
  EXPECT_LE(here->free_bytes, here->total_bytes);
  EXPECT_FALSE(here->is_read_only);
  const std::optional<DiskSpace> proc = DiskSpaceAt("/proc");
  ASSERT_TRUE(proc.has_value());
  EXPECT_EQ(proc->free_bytes, 0) << "a file system without a disk";
  EXPECT_FALSE(DiskSpaceAt(folder / "nowhere").has_value());
}

}  // namespace
}  // namespace mega
