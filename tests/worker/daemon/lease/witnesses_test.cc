// What a worker without renewal makes of what its witnesses say.
#include "gtest/gtest.h"
#include "worker/daemon/lease/lease.h"

namespace mega::lease {
namespace {

constexpr absl::Duration kTtl = absl::Seconds(10);

absl::Duration At(double seconds) { return absl::Seconds(seconds); }

mega::v1::WitnessSet Set(int64_t number, std::vector<std::string> nodes) {
  mega::v1::WitnessSet set;
  set.set_number(number);
  for (const std::string& node : nodes) {
    mega::v1::Witness& witness = *set.add_witnesses();
    witness.set_node(node);
    witness.set_incarnation(7);
  }
  return set;
}

Granted Grant(int64_t seq, mega::v1::WitnessSet set = {}) {
  return {.heartbeat_seq = seq, .ttl = kTtl, .outage_grace = absl::Seconds(30), .witnesses = set};
}

// Renewed at 100 s, with a set; then the coordinator is gone.
State Silent(std::vector<std::string> nodes = {"b", "c", "d"}) {
  State state;
  const Decision hello = Step(state, HelloDue{}, At(100));
  Step(state, Grant(*hello.send, Set(1, std::move(nodes))), At(100));
  Step(state, SessionDown{}, At(101));
  return state;
}

Decision No(State& state, int64_t round, const std::string& node, double at,
            int64_t incarnation = 7) {
  return Step(
      state, Answered{.round = round, .node = node, .incarnation = incarnation, .no_session = true},
      At(at));
}

TEST(Witnesses, AreAskedOncePerHeartbeatFromHalfOn) {
  State state = Silent();
  EXPECT_FALSE(Step(state, Tick{}, At(104.9)).ask_witnesses);
  EXPECT_TRUE(Step(state, Tick{}, At(106)).ask_witnesses);
  EXPECT_FALSE(Step(state, Tick{}, At(106.5)).ask_witnesses);
  EXPECT_TRUE(Step(state, Tick{}, At(107)).ask_witnesses);
}

TEST(Witnesses, AreNotAskedWhileRenewalsCome) {
  State state = Silent();
  const int64_t hello = *Step(state, HelloDue{}, At(103)).send;
  Step(state, Grant(hello), At(103));
  EXPECT_FALSE(Step(state, Tick{}, At(107)).ask_witnesses);
}

TEST(Witnesses, AMajorityWithoutSessionLetsRanksRunOnForALeaseFromTheAsking) {
  State state = Silent();
  const int64_t round = *Step(state, Tick{}, At(106)).ask_witnesses;
  EXPECT_FALSE(No(state, round, "b", 107).push_lease_end);
  EXPECT_EQ(state.end, At(110));
  EXPECT_FALSE(No(state, round, "b", 107).push_lease_end) << "the same one again";
  EXPECT_TRUE(No(state, round, "c", 108).push_lease_end);
  EXPECT_EQ(state.end, At(116));
  EXPECT_FALSE(Step(state, Tick{}, At(115.9)).kill_ranks);
  EXPECT_TRUE(Step(state, Tick{}, At(116)).kill_ranks);
}

TEST(Witnesses, AMinorityOrStrangersOrNobodyLetThemEndWithTheLease) {
  State state = Silent();
  const int64_t round = *Step(state, Tick{}, At(106)).ask_witnesses;
  No(state, round, "b", 107);
  No(state, round, "stranger", 107);
  No(state, round, "c", 107, /*incarnation=*/8);
  No(state, round + 50, "d", 107);
  EXPECT_TRUE(Step(state, Tick{}, At(110)).kill_ranks);
}

TEST(Witnesses, ThatSpeakLateCountFromTheAskingToo) {
  State state = Silent();
  const int64_t round = *Step(state, Tick{}, At(109)).ask_witnesses;
  No(state, round, "b", 110);
  EXPECT_TRUE(Step(state, Tick{}, At(110)).kill_ranks);
  EXPECT_FALSE(No(state, round, "c", 111).kill_ranks) << "what is started now may run";
  EXPECT_EQ(state.end, At(119));

  State later = Silent();
  const int64_t last = *Step(later, Tick{}, At(109)).ask_witnesses;
  No(later, last, "b", 119);
  EXPECT_TRUE(No(later, last, "c", 119).kill_ranks) << "a lease after the asking";
}

TEST(Witnesses, LetRanksRunNoLongerThanTheGracePastTheLease) {
  State state = Silent();
  for (double at = 106; at < 140; ++at) {
    const auto round = Step(state, Tick{}, At(at)).ask_witnesses;
    ASSERT_TRUE(round) << at;
    No(state, *round, "b", at + 0.1);
    No(state, *round, "d", at + 0.1);
  }
  EXPECT_EQ(state.end, At(140)) << "110 s and 30 s of grace";
  EXPECT_TRUE(Step(state, Tick{}, At(140)).kill_ranks);
}

TEST(Witnesses, AnEmptySetRunsOnToTheGraceAndNoSetToTheLease) {
  State alone = Silent({});
  for (double at = 106; at < 140; ++at) EXPECT_FALSE(Step(alone, Tick{}, At(at)).kill_ranks);
  EXPECT_TRUE(Step(alone, Tick{}, At(140)).kill_ranks);

  State old;  // a coordinator that names no set
  const Decision hello = Step(old, HelloDue{}, At(100));
  Step(old, Grant(*hello.send), At(100));
  EXPECT_FALSE(Step(old, Tick{}, At(106)).ask_witnesses);
  EXPECT_TRUE(Step(old, Tick{}, At(110)).kill_ranks);
}

TEST(Witnesses, ANewSetIsAckedAndVoidsWhatTheOldOneSaid) {
  State state = Silent();
  const int64_t round = *Step(state, Tick{}, At(106)).ask_witnesses;
  No(state, round, "b", 106);
  EXPECT_EQ(Step(state, Grant(0, Set(2, {"b", "x", "y"})), At(107)).ack_witnesses, 2);
  No(state, round, "x", 107);
  EXPECT_EQ(state.end, At(110));
  EXPECT_EQ(Step(state, Grant(0, Set(1, {"b", "c", "d"})), At(108)).ack_witnesses, 2);
  EXPECT_EQ(state.witnesses.witnesses(1).node(), "x") << "an older one comes late";
}

TEST(Witnesses, OneInSessionRenewsThroughItsRelay) {
  State state = Silent();
  const int64_t round = *Step(state, Tick{}, At(106)).ask_witnesses;
  Granted relayed = Grant(round);
  relayed.is_relayed = true;
  const Decision decision = Step(state, relayed, At(106.5));
  EXPECT_TRUE(decision.push_lease_end);
  EXPECT_FALSE(decision.ack_renewal) << "there is no session to ack in";
  EXPECT_EQ(state.end, At(116));
}

TEST(Witnesses, ARelayedLeaseIsNoLongerThanADirectOne) {
  State state = Silent();
  const auto relay = [&](double at, absl::Duration ttl, absl::Duration grace) {
    const int64_t round = *Step(state, Tick{}, At(at)).ask_witnesses;
    Step(state,
         Granted{.heartbeat_seq = round,
                 .ttl = ttl,
                 .outage_grace = grace,
                 .witnesses = {},
                 .is_relayed = true},
         At(at));
    return round;
  };
  relay(106, absl::Hours(1), absl::Hours(24));
  EXPECT_EQ(state.end, At(116));
  EXPECT_EQ(state.outage_grace, absl::Seconds(30));
  relay(112, absl::Seconds(8), absl::Seconds(20));
  EXPECT_EQ(state.end, At(120)) << "the coordinator may have been given a shorter one";
  EXPECT_EQ(state.outage_grace, absl::Seconds(20));
  relay(117, kTtl, absl::Seconds(30));
  EXPECT_EQ(state.end, At(127)) << "what counts is what came in a session";
}

TEST(Witnesses, ARenewalIsAckedOnce) {
  State state;
  const int64_t hello = *Step(state, HelloDue{}, At(100)).send;
  EXPECT_EQ(Step(state, Grant(hello), At(100.1)).ack_renewal, hello);
  EXPECT_FALSE(Step(state, Grant(hello), At(100.2)).ack_renewal);
}

TEST(Witnesses, SayNoSessionHalfALeaseAndTheSkewAfterTheirNewestRenewal) {
  State state;
  EXPECT_FALSE(HasNoSession(state, At(59))) << "never had one: nobody's witness";
  const int64_t hello = *Step(state, HelloDue{}, At(60)).send;
  Step(state, Grant(hello), At(63));  // sent at 60, had at 63
  Step(state, SessionDown{}, At(64));
  EXPECT_FALSE(HasNoSession(state, At(68.9)));
  EXPECT_TRUE(HasNoSession(state, At(69)));
}

}  // namespace
}  // namespace mega::lease
