#include "base/byte_count.h"

#include <gtest/gtest.h>

namespace mega {
namespace {

TEST(ByteCount, IsShort) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatBytes(6 << 20), "6.0 MiB");
  EXPECT_EQ(FormatBytes(1.5e18), "1332.3 PiB");
}

}  // namespace
}  // namespace mega
