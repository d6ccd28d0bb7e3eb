#include "base/yaml/yaml_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"

namespace mega {
namespace {

std::string ErrorOf(const std::string& text) {
  YamlError error;
  return YamlTree::Parse(text, &error).root() == nullptr ? error.message : "";
}

std::string Repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

TEST(YamlTree, KeepsDuplicatesPlacesAndQuotes) {
  YamlError error;
  const YamlTree tree = YamlTree::Parse("a: 1\n  \nb: '2'\na: |\n  3\n", &error);
  ASSERT_NE(tree.root(), nullptr) << error.message;
  const auto& entries = tree.root()->entries;
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[2].key->text, "a");
  EXPECT_EQ(entries[2].key->at.line, 4);
  EXPECT_FALSE(entries[0].value->quoted);
  EXPECT_TRUE(entries[1].value->quoted);
  EXPECT_EQ(entries[1].value->at.column, 4);
  EXPECT_TRUE(entries[2].value->quoted);
}

TEST(YamlTree, BombsAreRefusedWithinASecond) {
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 30; ++i)
    laughs +=
        fmt::format("a{}: &a{} [{}*a{}]\n", i, i, Repeated(fmt::format("*a{},", i - 1), 8), i - 1);
  const absl::Time start = absl::Now();
  EXPECT_EQ(ErrorOf(laughs), "") << "aliases cost a pointer each, so this one is harmless";
  EXPECT_EQ(ErrorOf("a: &a " + std::string(100'000, 'x') + "\nb: [" + Repeated("*a,", 100) + "]\n"),
            "aliases repeat too much; write the values out");
  EXPECT_EQ(ErrorOf("a: &a b\nc: [" + Repeated("*a,", 110'000) + "]\n"),
            "aliases repeat too much; write the values out");
  EXPECT_EQ(ErrorOf(Repeated("[", 40) + Repeated("]", 40)), "nested deeper than 32 levels");
  EXPECT_EQ(ErrorOf(Repeated("[", 100'000)), "nested deeper than 32 levels");
  EXPECT_EQ(ErrorOf("[" + Repeated("a,", 200'000) + "]"), "more than 100000 values in one file");
  EXPECT_EQ(ErrorOf(std::string(kMaxYamlBytes + 1, ' ')),
            "1048577 bytes; such a file holds at most 1048576");
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));
}

}  // namespace
}  // namespace mega
