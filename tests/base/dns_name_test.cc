#include "base/dns_name.h"

#include <string>

#include "gtest/gtest.h"

namespace mega {
namespace {

TEST(DnsName, ALabelIsLowerCaseLettersDigitsAndInnerDashes) {
  for (const char* good : {"a", "7", "a-b", "x--9", "default"}) EXPECT_TRUE(IsDnsLabel(good));
  EXPECT_TRUE(IsDnsLabel(std::string(63, 'a')));
  EXPECT_FALSE(IsDnsLabel(std::string(64, 'a')));
  for (const char* bad : {"", "-a", "a-", "A", "a.b", "a_b", "../x", "a/b", " a", "ä", "a\n"}) {
    EXPECT_FALSE(IsDnsLabel(bad)) << bad;
  }
  EXPECT_FALSE(IsDnsLabel(std::string_view("a\0", 2)));
}

TEST(DnsName, AHostNameIsSuchPartsInEitherCaseJoinedByDots) {
  for (const char* good : {"a", "node-7", "Node7", "gpu-01.rack-3.example.COM", "10.1.2.3"}) {
    EXPECT_TRUE(IsHostName(good)) << good;
  }
  std::string longest = std::string(63, 'a');
  for (int i = 0; i < 2; ++i) longest += "." + std::string(63, 'a');
  longest += "." + std::string(61, 'a');
  EXPECT_EQ(longest.size(), 253u);
  EXPECT_TRUE(IsHostName(longest));
  EXPECT_FALSE(IsHostName(longest + "a"));
  for (const char* bad : {"", ".", "..", "a..b", ".a", "a.", "-a", "a.-b", "a/b", "../x", "a_b",
                          "a b", "a\nb", "ä"}) {
    EXPECT_FALSE(IsHostName(bad)) << bad;
  }
}

}  // namespace
}  // namespace mega
