#include "base/listen_address.h"

#include "gtest/gtest.h"

namespace mega {
namespace {

TEST(ListenAddress, ReadsHostAndPort) {
  const auto v4 = ParseListenAddress("--listen", "127.0.0.1:7070");
  ASSERT_TRUE(v4.ok());
  EXPECT_EQ(v4->host, "127.0.0.1");
  EXPECT_EQ(v4->port, 7070);
  const auto v6 = ParseListenAddress("--listen", "[::1]:0");
  ASSERT_TRUE(v6.ok());
  EXPECT_EQ(v6->host, "::1");
  EXPECT_EQ(v6->ToString(), "[::1]:0");
  for (const char* bad :
       {"",           "7070",   "host:", ":1",          "::1:5",       "h:65536",  "h:-1",
        "h:1x",       "h:+1",   "h: 1",  "h:1 ",        "h:1\x1b[31m", "h:000001", "h:131142",
        "h\n:1",      "h /x:1", "[h]:1", "[::1]x:1",    "[::1%]:1",    "[]:1",     "unix:/a:1",
        "dns:///h:1", "h:1:2",  "ä:1",   "h:4294967366"}) {
    EXPECT_FALSE(ParseListenAddress("--listen", bad).ok()) << bad;
    EXPECT_FALSE(ParseServerAddress("--coordinator", bad).ok()) << bad;
  }
  for (const char* good : {"a_b.c-d:65535", "[fe80::1%eth0]:1", "10.0.0.1:7070"}) {
    EXPECT_TRUE(ParseListenAddress("--listen", good).ok()) << good;
    EXPECT_EQ(ParseServerAddress("--coordinator", good)->ToString(), good);
  }
}

TEST(ListenAddress, OneToCallHasAPort) {
  EXPECT_TRUE(ParseListenAddress("--listen", "h:0").ok());
  EXPECT_EQ(ParseServerAddress("--coordinator", "h:0\a").status().message(),
            "--coordinator is 'h:0?'; write HOST:PORT with a port from 1 to 65535, such as "
            "127.0.0.1:7070");
  EXPECT_FALSE(ParseServerAddress("--coordinator", "h:0").ok());
}

TEST(ListenAddress, OnlyLoopbackMayBePlain) {
  for (const char* loopback :
       {"127.0.0.1:0", "localhost:0", "[::1]:0", "127.8.9.1:0", "[::ffff:127.0.0.1]:0"}) {
    EXPECT_TRUE(ParseListenAddress("--listen", loopback)->is_loopback()) << loopback;
  }
  for (const char* open :
       {"0.0.0.0:0", "[::]:0", "node7:0", "10.0.0.1:0", "127.example.com:0",
        "localhost.example.com:0", "127.0.0.1.example.com:0", "[::ffff:10.0.0.1]:0"}) {
    EXPECT_FALSE(ParseListenAddress("--listen", open)->is_loopback()) << open;
  }
}

}  // namespace
}  // namespace mega
