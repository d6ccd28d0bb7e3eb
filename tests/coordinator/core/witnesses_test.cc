// Whose word lets a silent node's ranks run on, and when the coordinator may give them away.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/core/cluster.h"

namespace mega::core {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::vector<std::string> Named(const v1::WitnessSet& set) {
  std::vector<std::string> nodes;
  for (const v1::Witness& witness : set.witnesses()) nodes.push_back(witness.node());
  return nodes;
}

// A job on a and b (one device each); others take part without devices.
JobUid Pair(Cluster& cluster, const std::vector<std::string>& others) {
  cluster.takes_part = true;
  const JobUid uid = RunningPair(cluster);
  for (const std::string& other : others) cluster.Hello(other, {.devices = 0});
  cluster.Run(absl::Seconds(3));
  return uid;
}

bool IsLost(const Cluster& cluster, const JobUid& uid, int rank) {
  return cluster.attempt(uid).ranks(rank).lost();
}

TEST(Witnesses, AreUpToThreeOthersFromOtherRacksFirst) {
  Cluster cluster;
  cluster.takes_part = true;
  for (const char* node : {"a", "b", "c", "d"}) cluster.Hello(node, {.rack = "near"});
  for (const char* node : {"x", "y"}) cluster.Hello(node, {.rack = node});
  cluster.Hello("z", {.rack = "y"});
  cluster.Run(absl::Seconds(2));
  EXPECT_THAT(Named(cluster.held["a"]),
              ::testing::AllOf(::testing::SizeIs(3), ::testing::Contains("x"),
                               ::testing::Contains("y"), ::testing::Contains("z")));
  EXPECT_EQ(cluster.held["x"].witnesses_size(), 3);
}

TEST(Witnesses, GrowWithTheFleetAndAreReplacedWhenOneLeaves) {
  Cluster cluster;
  cluster.takes_part = true;
  cluster.Hello("a");
  cluster.Run(absl::Seconds(1));
  EXPECT_THAT(Named(cluster.held["a"]), IsEmpty());
  EXPECT_GT(cluster.held["a"].number(), 0);
  cluster.Hello("b");
  cluster.Run(absl::Seconds(1));
  EXPECT_THAT(Named(cluster.held["a"]), UnorderedElementsAre("b"));
  for (const char* node : {"c", "d", "e"}) cluster.Hello(node);
  cluster.Run(absl::Seconds(1));
  const std::vector<std::string> before = Named(cluster.held["a"]);
  EXPECT_EQ(before.size(), 3u);
  cluster.Hello(before[0], {.incarnation = 2});  // another process
  v1::WorkerMessage goodbye;
  goodbye.mutable_goodbye()->set_reason("SIGTERM");
  cluster.Say(before[1], goodbye);
  cluster.CloseSession(before[1]);
  const int64_t number = cluster.held["a"].number();
  cluster.Run(absl::Seconds(2));
  EXPECT_GT(cluster.held["a"].number(), number);
  for (const v1::Witness& witness : cluster.held["a"].witnesses()) {
    EXPECT_NE(witness.node(), before[1]);
    EXPECT_EQ(witness.incarnation(), witness.node() == before[0] ? 2 : 1);
  }
  EXPECT_EQ(cluster.state.durable.nodes.at("a").witness_sets_size(), 1) << "older are not held";
}

TEST(Witnesses, ASetWaitsForTheDiskAndIsSentUntilItIsAcked) {
  Cluster cluster;
  cluster.takes_part = true;
  cluster.Hello("b");
  cluster.Run(absl::Seconds(2));
  int sent = 0;
  cluster.Hello("a");
  cluster.mute = {"a"};  // its acks of renewals came; those of sets do not
  for (int i = 0; i < 30; ++i) {
    cluster.Run(absl::Milliseconds(100));
    for (const v1::Effect& effect : cluster.effects) {
      const v1::SendToWorker& send = effect.send();
      if (send.node() != "a" || !send.message().lease().has_witnesses()) continue;
      ++sent;
      EXPECT_FALSE(effect.immediate());
    }
  }
  EXPECT_GE(sent, 1);
  EXPECT_EQ(cluster.state.durable.nodes.at("a").witness_sets_size(), 1);
}

TEST(Witnesses, AMajorityInSessionGivesASilentNodeAwayAfterLeaseAndSkew) {
  Cluster cluster;
  const JobUid uid = Pair(cluster, {"c", "d"});
  cluster.silent = {"b"};
  cluster.Run(absl::Seconds(10.8));
  EXPECT_FALSE(IsLost(cluster, uid, 1));
  cluster.Run(absl::Seconds(0.4));
  EXPECT_TRUE(IsLost(cluster, uid, 1));
}

TEST(Witnesses, WithoutTheMajorityItWaitsForTheOutageGrace) {
  Cluster cluster;
  cluster.state.options.outage_grace = absl::Seconds(60);
  const JobUid uid = Pair(cluster, {"c", "d"});
  cluster.silent = {"b", "c", "d"};
  cluster.Run(absl::Seconds(70));
  EXPECT_FALSE(IsLost(cluster, uid, 1));
  EXPECT_EQ(cluster.state.durable.nodes.at("c").state(), v1::NODE_STATE_LOST) << "ran nothing";
  cluster.Run(absl::Seconds(2));
  EXPECT_TRUE(IsLost(cluster, uid, 1));
}

TEST(Witnesses, AreInSessionByTheirAcksAndNotByTheirHeartbeats) {
  Cluster cluster;
  const JobUid uid = Pair(cluster, {});
  cluster.silent = {"b"};
  cluster.mute = {"a"};  // heartbeats, and may hear nothing
  cluster.Run(absl::Seconds(60));
  EXPECT_FALSE(IsLost(cluster, uid, 1));
}

TEST(Witnesses, MustHaveBeenInSessionThroughout) {
  Cluster cluster;
  const JobUid uid = Pair(cluster, {});
  cluster.silent = {"b"};
  cluster.Run(absl::Seconds(2));
  cluster.mute = {"a"};
  cluster.Run(absl::Seconds(6));
  cluster.mute.clear();  // it may have said "no session" for a moment, 8 s after the renewal
  cluster.Run(absl::Seconds(10));
  EXPECT_FALSE(IsLost(cluster, uid, 1));
  cluster.Run(absl::Seconds(3));  // but nothing said so long ago lets a rank live
  EXPECT_TRUE(IsLost(cluster, uid, 1));
}

TEST(Witnesses, AnEmptySetIsNoMajority) {
  Cluster cluster;
  cluster.takes_part = true;
  cluster.state.options.outage_grace = absl::Seconds(60);
  cluster.Hello("a");
  cluster.Run(absl::Seconds(2));
  cluster.Submit("job", 2);
  cluster.AckAll("a");
  cluster.silent = {"a"};
  cluster.Run(absl::Seconds(70));
  EXPECT_FALSE(IsLost(cluster, "job", 0));
  cluster.Run(absl::Seconds(3));
  EXPECT_TRUE(IsLost(cluster, "job", 0));
}

TEST(Witnesses, EverySetThatTheNodeMayHoldCounts) {
  Cluster cluster;
  cluster.state.options.outage_grace = absl::Seconds(60);
  const JobUid uid = Pair(cluster, {"c"});  // b holds {a, c}
  cluster.mute = {"b"};
  cluster.silent = {"b"};
  cluster.Hello("d", {.devices = 0});
  v1::WorkerMessage beat;
  beat.mutable_heartbeat()->set_seq(1000);
  cluster.Say("b", beat);
  cluster.Run(absl::Seconds(0.3));  // {a, c, d} was sent, and nobody knows whether it came
  ASSERT_EQ(cluster.state.durable.nodes.at("b").witness_sets_size(), 2);
  cluster.silent.insert("c");  // a and d are two of three, but a is one of two
  cluster.Run(absl::Seconds(30));
  EXPECT_FALSE(IsLost(cluster, uid, 1));
}

TEST(Witnesses, AreHeardAfreshAfterARestart) {
  Cluster cluster;
  const JobUid uid = Pair(cluster, {"c", "d"});
  const v1::Node before = cluster.state.durable.nodes.at("b");
  cluster.Restart();
  cluster.Run(absl::Seconds(2));
  for (const char* node : {"c", "d"}) {
    cluster.Hello(node, {.devices = 0, .acked_witness_set = cluster.held[node].number()});
  }
  cluster.Run(absl::Seconds(10.8));  // 12.8 s after the start; acked since 2 s
  EXPECT_FALSE(IsLost(cluster, uid, 1));
  cluster.Run(absl::Seconds(0.5));
  EXPECT_TRUE(IsLost(cluster, uid, 1));
  EXPECT_EQ(cluster.state.durable.nodes.at("b").witness_sets(0).number(),
            before.witness_sets(0).number());
}

TEST(Witnesses, OneThatItsOwnSuccessorReplacedCanSayNothingMore) {
  Cluster cluster;
  const JobUid uid = Pair(cluster, {});
  cluster.silent = {"b"};
  cluster.Run(absl::Seconds(3));
  cluster.Hello("a", {.devices = 1, .incarnation = 2, .running = {cluster.ref(uid, 0)}});
  cluster.Run(absl::Seconds(10.8));
  EXPECT_FALSE(IsLost(cluster, uid, 1));
  cluster.Run(absl::Seconds(0.5));
  EXPECT_TRUE(IsLost(cluster, uid, 1));
}

TEST(Relay, AWitnessRenewsANodeThatCannotReachUs) {
  Cluster cluster;
  const JobUid uid = Pair(cluster, {"c"});
  cluster.silent = {"b"};
  const auto relay = [&](const NodeId& via, int64_t incarnation) {
    v1::WorkerMessage message;
    message.mutable_relayed_heartbeat()->set_node("b");
    message.mutable_relayed_heartbeat()->set_incarnation(incarnation);
    message.mutable_relayed_heartbeat()->set_heartbeat_seq(77);
    cluster.Say(via, message);
    EXPECT_EQ(cluster.effects.size(), 1u);
    return cluster.effects[0].send().message().relayed_lease();
  };
  for (int i = 0; i < 10; ++i) {
    cluster.Run(absl::Seconds(5));
    const v1::RelayedLease lease = relay("c", 1);
    EXPECT_EQ(lease.node(), "b");
    EXPECT_EQ(lease.lease().heartbeat_seq(), 77);
    EXPECT_TRUE(cluster.effects[0].immediate());
    EXPECT_FALSE(relay("c", 0).has_lease()) << "an older process";
  }
  EXPECT_EQ(cluster.attempt(uid).number(), 1);
  EXPECT_FALSE(IsSchedulable(cluster.state, "b")) << "nothing new can reach it";
  cluster.Run(absl::Seconds(12));
  EXPECT_TRUE(IsLost(cluster, uid, 1));
  EXPECT_FALSE(relay("c", 1).has_lease()) << "it has been given away";
}

}  // namespace
}  // namespace mega::core
