#include "base/atomic_file.h"

#include <stdlib.h>

#include <filesystem>

#include "base/read_file.h"
#include "gtest/gtest.h"

namespace mega {
namespace {

namespace fs = std::filesystem;

class AtomicFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = fs::temp_directory_path() / "mega-file-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string folder_;
};

TEST_F(AtomicFile, IsTheNewOneOrTheOldOneAndNothingBeside) {
  const std::string path = folder_ + "/file";
  ASSERT_TRUE(WriteFileAtomically(path, "old").ok());
  ASSERT_TRUE(WriteFileAtomically(path, "new and longer").ok());
  EXPECT_EQ(*ReadRegularFile(path, 100), "new and longer");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);

  fs::create_directories(path + ".tmp/in the way");
  const absl::Status failed = WriteFileAtomically(path, "never");
  EXPECT_NE(failed.message().find(path), std::string::npos) << failed.ToString();
  EXPECT_EQ(*ReadRegularFile(path, 100), "new and longer");
}

}  // namespace
}  // namespace mega
