#include "base/utf8.h"

#include "gtest/gtest.h"

namespace mega {
namespace {

TEST(Utf8, FindsTheFirstBadByte) {
  const auto npos = std::string_view::npos;
  EXPECT_EQ(FirstBadByte("plain\t\n"), npos);
  EXPECT_EQ(FirstBadByte("ä€😀"), npos);
  EXPECT_EQ(FirstBadByte("a\x80"), 1u);
  EXPECT_EQ(FirstBadByte("\xC0\x80"), 0u) << "overlong";
  EXPECT_EQ(FirstBadByte("\xED\xA0\x80"), 0u) << "surrogate";
  EXPECT_EQ(FirstBadByte("\xF4\x90\x80\x80"), 0u) << "past U+10FFFF";
  EXPECT_EQ(FirstBadByte("ab\xE2\x82"), 2u) << "cut short";
  EXPECT_EQ(FirstBadByte(std::string_view("a\0", 2)), 1u);
  EXPECT_EQ(FirstBadByte("\x7F"), 0u);
  EXPECT_EQ(CutUtf8("a€b", 2), "a");
  EXPECT_EQ(CutUtf8("a€b", 4), "a€");
}

TEST(Utf8, AControlCharacterIsUtf8AndAStrayByteIsNot) {
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8("\x1b[2J ä€😀\x7F"));
  for (const char* text : {"\xFF", "a\xC3", "\xED\xA0\x80"}) EXPECT_FALSE(IsUtf8(text)) << text;
}

}  // namespace
}  // namespace mega
