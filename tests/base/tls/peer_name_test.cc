// A certificate is of one peer, written in one way.
#include "base/tls/peer_name.h"

#include "gtest/gtest.h"

namespace mega::tls {
namespace {

std::optional<PeerName> Peer(const std::vector<std::string>& uris) { return PeerIn(uris); }

const PeerName kNode1{PeerName::Kind::kNode, "n1"};

TEST(PeerIn, OthersUrisAreNoneOfOurs) {
  EXPECT_EQ(Peer({"https://example.org", "spiffe://mega/node/n1", "spiffe://other/x"}), kNode1);
  EXPECT_EQ(Peer({}), std::nullopt);
  EXPECT_EQ(Peer({"https://example.org"}), std::nullopt);
}

TEST(PeerIn, OfTwoIdentitiesNoneCounts) {
  for (const char* other : {"spiffe://mega/node/n2", "spiffe://mega/coordinator", "spiffe://mega/x",
                            "SPIFFE://Mega/user/ada", "spiffe://mega/node/n1"}) {
    EXPECT_EQ(Peer({"spiffe://mega/node/n1", other}), std::nullopt) << other;
    EXPECT_EQ(Peer({other, "spiffe://mega/node/n1"}), std::nullopt) << other;
  }
}

TEST(PeerIn, EveryLetterCounts) {
  EXPECT_EQ(Peer({"spiffe://mega/node/N1"}), (PeerName{PeerName::Kind::kNode, "N1"}));
  for (const char* uri :
       {"SPIFFE://mega/node/n1", "spiffe://MEGA/node/n1", "spiffe://mega/Node/n1",
        "spiffe://mega/Coordinator", "spiffe://mega/node/n1 ", "spiffe://mega/node/n%31"}) {
    EXPECT_EQ(Peer({uri}), std::nullopt) << uri;
  }
  EXPECT_EQ(Peer({std::string("spiffe://mega/node/n1\0", 22)}), std::nullopt);
}

TEST(PeerIn, NamesAreBounded) {
  const std::string part(60, 'a');
  const std::string longest = part + "." + part + "." + part + "." + part;  // 243
  ASSERT_EQ(longest.size(), kMostNodeName);
  EXPECT_TRUE(Peer({"spiffe://mega/node/" + longest}).has_value());
  EXPECT_EQ(Peer({"spiffe://mega/node/" + longest + "a"}), std::nullopt);
  EXPECT_EQ(Peer({"spiffe://mega/user/" + std::string(129, 'a')}), std::nullopt);
}

}  // namespace
}  // namespace mega::tls
