#include "base/printable.h"

#include "gtest/gtest.h"

namespace mega {
namespace {

TEST(Printable, NothingThatDrivesATerminalStays) {
  EXPECT_EQ(Printable("\x1b[31mred\a\b\x7f"), "?[31mred???");
  EXPECT_EQ(Printable(std::string_view("a\0b", 3)), "a?b");
  EXPECT_EQ(Printable("a\xC2\x9B"
                      "2Jb"),
            "a?2Jb")
      << "U+009B begins an escape sequence, too";
  EXPECT_EQ(Printable("a\x9B"
                      "b\xE2\x82"),
            "a?b??")
      << "bytes that are no UTF-8";
  EXPECT_EQ(Printable("tab\tline\n return\r"), "tab\tline\n return?");
  EXPECT_EQ(PrintableLine("tab\tline\n return\r"), "tab?line? return?");
  for (const char* plain : {"", "plain", "ä€😀 \xC2\xA0"}) {
    EXPECT_EQ(Printable(plain), plain);
    EXPECT_EQ(PrintableLine(plain), plain);
  }
}

TEST(Printable, AnErrorNamesItsProgram) {
  ::testing::internal::CaptureStderr();
  TellError("mega-x", absl::NotFoundError("no such file \x1b[2J"));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "mega-x: no such file ?[2J\n");
}

}  // namespace
}  // namespace mega
