// When ranks may run, from the worker's side.
#include "worker/daemon/lease/lease.h"

#include "gtest/gtest.h"

namespace mega::lease {
namespace {

constexpr absl::Duration kTtl = absl::Seconds(10);

absl::Duration At(double seconds) { return absl::Seconds(seconds); }

// In session since 100 s, with a lease from there.
State Leased() {
  State state;
  const Decision hello = Step(state, HelloDue{}, At(100));
  Step(state, Granted{.heartbeat_seq = *hello.send, .ttl = kTtl}, At(100.2));
  return state;
}

TEST(Lease, ThereIsNoneBeforeTheFirstAnswer) {
  State state;
  EXPECT_TRUE(Step(state, HelloDue{}, At(100)).kill_ranks);
  EXPECT_FALSE(MayRun(state, At(100)));
}

TEST(Lease, RunsFromWhenTheAnsweredHeartbeatWasSent) {
  State state;
  const int64_t hello = *Step(state, HelloDue{}, At(100)).send;
  const Decision decision = Step(state, Granted{.heartbeat_seq = hello, .ttl = kTtl}, At(106));
  EXPECT_TRUE(decision.push_lease_end);
  EXPECT_EQ(state.end, At(110));
}

TEST(Lease, KillsAtItsEndAndNotBefore) {
  State state = Leased();
  Step(state, SessionDown{}, At(101));
  EXPECT_FALSE(Step(state, Tick{}, At(109.999)).kill_ranks);
  const Decision before = Step(state, Tick{}, At(109.9));
  EXPECT_EQ(before.wake_at, At(110)) << "a timer is set for the end itself";
  EXPECT_TRUE(Step(state, Tick{}, At(110)).kill_ranks);
  EXPECT_FALSE(MayRun(state, At(110)));
  EXPECT_TRUE(Step(state, Tick{}, At(111)).kill_ranks) << "whatever was started since";
}

TEST(Lease, AHeartbeatLeavesEverySecondInSessionOnly) {
  State state = Leased();
  EXPECT_FALSE(Step(state, Tick{}, At(100.9)).send.has_value());
  const Decision due = Step(state, Tick{}, At(101));
  EXPECT_EQ(due.send, 2);
  EXPECT_EQ(due.wake_at, At(102));
  Step(state, SessionDown{}, At(101.5));
  EXPECT_FALSE(Step(state, Tick{}, At(102)).send.has_value());
}

TEST(Lease, OnlyAnAnswerToANewerHeartbeatMovesTheEnd) {
  State state = Leased();
  const int64_t second = *Step(state, Tick{}, At(101)).send;
  const int64_t third = *Step(state, Tick{}, At(102)).send;
  EXPECT_TRUE(Step(state, Granted{.heartbeat_seq = third, .ttl = kTtl}, At(102.1)).push_lease_end);
  EXPECT_FALSE(Step(state, Granted{.heartbeat_seq = second, .ttl = kTtl}, At(103)).push_lease_end);
  EXPECT_FALSE(Step(state, Granted{.heartbeat_seq = third, .ttl = kTtl}, At(103)).push_lease_end);
  EXPECT_FALSE(Step(state, Granted{.heartbeat_seq = 99, .ttl = kTtl}, At(103)).push_lease_end);
  EXPECT_EQ(state.end, At(112));
}

TEST(Lease, ALateAnswerGivesALeaseThatIsOver) {
  State state = Leased();
  const int64_t seq = *Step(state, Tick{}, At(101)).send;
  const Decision decision = Step(state, Granted{.heartbeat_seq = seq, .ttl = kTtl}, At(115));
  EXPECT_TRUE(decision.kill_ranks);
  EXPECT_FALSE(MayRun(state, At(115)));
}

TEST(Lease, TheCoordinatorsNewestWordMayShortenIt) {
  State state = Leased();
  const int64_t seq = *Step(state, Tick{}, At(101)).send;
  Step(state, Granted{.heartbeat_seq = seq, .ttl = absl::Seconds(3)}, At(101.1));
  EXPECT_EQ(state.end, At(104));
}

TEST(Lease, AnAbsurdGrantIsBounded) {
  State state = Leased();
  for (const absl::Duration ttl : {absl::InfiniteDuration(), absl::Hours(100'000)}) {
    const int64_t seq = *Step(state, Tick{}, state.heartbeat_due).send;
    Step(state, Granted{.heartbeat_seq = seq, .ttl = ttl}, state.heartbeat_due);
    EXPECT_EQ(state.end - state.renewed, absl::Hours(1));
  }
  const int64_t seq = *Step(state, Tick{}, state.heartbeat_due).send;
  Step(state, Granted{.heartbeat_seq = seq, .ttl = -absl::InfiniteDuration()}, At(103.5));
  EXPECT_FALSE(MayRun(state, At(103.5)));
}

TEST(Lease, UnansweredHeartbeatsAreBounded) {
  State state = Leased();
  for (int i = 0; i < 1000; ++i) Step(state, Tick{}, state.heartbeat_due);
  EXPECT_LE(state.unanswered.size(), 64u);
}

}  // namespace
}  // namespace mega::lease
