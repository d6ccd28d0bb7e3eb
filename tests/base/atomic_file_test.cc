#include "base/atomic_file.h"

#include <filesystem>

#include "base/read_file.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace mega {
namespace {

namespace fs = std::filesystem;

TEST(AtomicFile, IsTheNewOneOrTheOldOneAndNothingBeside) {
  const testing::TempDir folder;
  const std::string path = folder / "file";
  ASSERT_TRUE(WriteFileAtomically(path, "old").ok());
  ASSERT_TRUE(WriteFileAtomically(path, "new and longer").ok());
  EXPECT_EQ(*ReadRegularFile(path, 100), "new and longer");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);

  fs::create_directories(path + ".tmp/in the way");
  const absl::Status failed = WriteFileAtomically(path, "never");
  EXPECT_NE(failed.message().find(path), std::string::npos) << failed.ToString();
  EXPECT_EQ(*ReadRegularFile(path, 100), "new and longer");
}

}  // namespace
}  // namespace mega
