#include "base/folder.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/failing_readdir.h"
#include "tests/support/temp_dir.h"

namespace mega {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Folder, ListsWhatLiesInIt) {
  mega::testing::TempDir folder;
  EXPECT_TRUE(ListFolder(folder.path())->empty());
  for (const char* name : {"a", ".b", "c d"}) mega::testing::WriteFile(folder / name, "");
  std::vector<std::string> names;
  const auto entries = ListFolder(folder.path());
  ASSERT_TRUE(entries.ok()) << entries.status();
  for (const auto& entry : *entries) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  EXPECT_THAT(names, ElementsAre(".b", "a", "c d"));
}

TEST(Folder, ThatIsNoneOrIsNotThereIsAnErrorThatNamesIt) {
  mega::testing::TempDir folder;
  mega::testing::WriteFile(folder / "file", "");
  EXPECT_TRUE(absl::IsNotFound(ListFolder(folder / "none").status()));
  const auto file = ListFolder(folder / "file");
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(std::string(file.status().message()), HasSubstr(folder / "file"));
}

// Case: ESTALE of an NFS server in the middle of a folder came out of an iterator as an exception,
// and the worker ended with all its ranks.
TEST(Folder, ThatCannotBeReadToItsEndIsAnError) {
  mega::testing::TempDir folder;
  for (const char* name : {"a", "b", "c"}) mega::testing::WriteFile(folder / name, "");
  for (int entries = 0; entries < 5; ++entries) {
    const mega::testing::FailingReaddir failing(entries);
    EXPECT_THAT(std::string(ListFolder(folder.path()).status().message()),
                HasSubstr("Input/output error"))
        << entries;
  }
}

}  // namespace
}  // namespace mega
