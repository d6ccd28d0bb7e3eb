// tests/cases.md names tests, and each of them exists.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string>

#include "gtest/gtest.h"
#include "tests/e2e/process.h"

namespace mega::docs {
namespace {

namespace fs = std::filesystem;

std::string WithoutSpace(std::string text) {
  std::erase_if(text, [](unsigned char c) { return std::isspace(c) != 0; });
  return text;
}

TEST(Cases, NameTestsThatExist) {
  const fs::path tests = fs::path(MEGA_SOURCE_DIR) / "tests";
  std::string sources;
  for (const auto& entry : fs::recursive_directory_iterator(tests)) {
    if (entry.path().string().ends_with("_test.cc")) {
      sources += WithoutSpace(e2e::ReadFile(entry.path()));
    }
  }
  const std::string text = e2e::ReadFile(tests / "cases.md");
  int count = 0;
  for (size_t begin = text.find('`'); begin != std::string::npos; begin = text.find('`', begin)) {
    const size_t end = text.find('`', begin + 1);
    ASSERT_NE(end, std::string::npos);
    std::string name = text.substr(begin + 1, end - begin - 1);
    begin = end + 1;
    const size_t dot = name.find('.');
    if (dot == std::string::npos || name.find('/') != std::string::npos) continue;
    ++count;
    name[dot] = ',';
    EXPECT_NE(sources.find("(" + name + ")"), std::string::npos) << name;
  }
  EXPECT_GT(count, 60);
}

}  // namespace
}  // namespace mega::docs
