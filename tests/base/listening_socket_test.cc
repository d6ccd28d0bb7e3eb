#include "base/listening_socket.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "gmock/gmock.h"
#include "tests/support/hosts.h"

namespace mega {
namespace {

bool Answers(int family, int port) {
  const UniqueFd fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(static_cast<uint16_t>(port));
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = v4.sin_port;
  v6.sin6_addr = in6addr_loopback;
  const bool is_v4 = family == AF_INET;
  return connect(fd.get(),
                 is_v4 ? reinterpret_cast<sockaddr*>(&v4) : reinterpret_cast<sockaddr*>(&v6),
                 is_v4 ? sizeof(v4) : sizeof(v6)) == 0;
}

bool HasIpv6() {
  ListenAddress at{"::1", 0};
  return ListenOn(at).ok();
}

TEST(ListeningSocket, AWildcardTakesIpv4AndIpv6) {
  for (const char* host : {"0.0.0.0", "::"}) {
    ListenAddress at{host, 0};
    const auto sockets = ListenOn(at);
    ASSERT_TRUE(sockets.ok()) << sockets.status().ToString();
    EXPECT_TRUE(Answers(AF_INET, at.port)) << host;
    if (HasIpv6()) EXPECT_TRUE(Answers(AF_INET6, at.port)) << host;
  }
}

TEST(ListeningSocket, ANameListensAtItsAddressesOnOnePort) {
  ListenAddress at{"localhost", 0};
  const auto sockets = ListenOn(at);
  ASSERT_TRUE(sockets.ok()) << sockets.status().ToString();
  EXPECT_NE(at.port, 0);
  EXPECT_TRUE(Answers(AF_INET, at.port));
}

// Case: a file of hosts that had a line twice, and a port "in use" by the server itself.
TEST(ListeningSocket, AnAddressThatIsNamedTwiceIsOne) {
  ListenAddress at{testing::kHostNamedTwice, 0};
  const auto sockets = ListenOn(at);
  ASSERT_TRUE(sockets.ok()) << sockets.status().ToString();
  EXPECT_EQ(sockets->size(), 1u);
  EXPECT_TRUE(Answers(AF_INET, at.port));
}

TEST(ListeningSocket, APortHasOneListener) {
  ListenAddress at{"127.0.0.1", 0};
  const auto first = ListenOn(at);
  ASSERT_TRUE(first.ok());
  ListenAddress everywhere{"0.0.0.0", at.port};
  EXPECT_FALSE(ListenOn(at).ok());
  EXPECT_FALSE(ListenOn(everywhere).ok());
}

TEST(ListeningSocket, SaysWhatIsWrongWithTheHost) {
  ListenAddress nowhere{"203.0.113.1", 0};
  EXPECT_THAT(ListenOn(nowhere).status().message(), ::testing::HasSubstr("assign"));
  ListenAddress unknown{testing::kUnknownHost, 0};
  EXPECT_FALSE(ListenOn(unknown).ok());
}

}  // namespace
}  // namespace mega
