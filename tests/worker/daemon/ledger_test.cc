#include "worker/daemon/ledger.h"

#include "gtest/gtest.h"

namespace mega::daemon {
namespace {

v1::Command StartOrder(int64_t seq, std::vector<int64_t> ranks) {
  v1::Command command;
  command.set_seq(seq);
  command.mutable_start_ranks()->set_job_uid("job");
  command.mutable_start_ranks()->set_attempt(1);
  command.mutable_start_ranks()->set_epoch(5);
  for (const int64_t rank : ranks) command.mutable_start_ranks()->add_ranks(rank);
  return command;
}

const RankKey kRank{"job", 1, 5, 0};

TEST(Ledger, ACommandIsTakenOnce) {
  Ledger ledger({});
  EXPECT_TRUE(ledger.Accept(StartOrder(1, {0})));
  EXPECT_FALSE(ledger.Accept(StartOrder(1, {0})));
  EXPECT_EQ(ledger.Record().ranks_size(), 1);
}

TEST(Ledger, NoHelloDeniesARankWhoseOrderWasTaken) {
  Ledger ledger({});
  ledger.Accept(StartOrder(1, {0, 1}));
  const auto words = ledger.Introduce({}, absl::Seconds(1));
  EXPECT_EQ(words.at(0).hello().running_size(), 2);
  // Not on disk yet: a crash now would forget it, so the coordinator must keep it.
  EXPECT_EQ(words.at(0).hello().last_command_seq(), 0);
  ledger.SetDurable(1);
  EXPECT_EQ(ledger.Introduce({}, absl::Seconds(1)).at(0).hello().last_command_seq(), 1);
}

TEST(Ledger, AnExitIsToldUntilItWasHeard) {
  Ledger ledger({});
  ledger.Accept(StartOrder(1, {0}));
  v1::ExitStatus exit;
  exit.set_signal(9);
  ledger.Exited(kRank, exit, absl::Seconds(10));
  EXPECT_EQ(ledger.Record().ranks_size(), 0);
  ledger.Heard(absl::Seconds(10));  // of what was sent before it
  auto words = ledger.Introduce({}, absl::Seconds(20));
  ASSERT_EQ(words.at(0).hello().exited_size(), 1);
  EXPECT_EQ(words.at(0).hello().exited(0).exit().signal(), 9);
  EXPECT_EQ(words.at(0).hello().running_size(), 0);
  ledger.Heard(absl::Seconds(15));  // before it was told again
  EXPECT_EQ(ledger.Record().exited_size(), 1);
  ledger.Heard(absl::Seconds(21));
  EXPECT_EQ(ledger.Record().exited_size(), 0);
}

TEST(Ledger, AddressesAndPartsAreOwedUntilTheirAnswer) {
  Ledger ledger({});
  ledger.Accept(StartOrder(1, {0}));
  ledger.Ready(kRank, "address");
  v1::WorkerMessage part;
  part.mutable_checkpoint_part()->set_step(10);
  ledger.Owe(kRank, 10, part);
  auto words = ledger.Introduce({}, {});
  ASSERT_EQ(words.size(), 3u);
  EXPECT_EQ(words[1].rank_ready().address(), "address");
  EXPECT_EQ(words[2].checkpoint_part().step(), 10);
  ledger.Connected("job", 5);
  ledger.Committed("job", 5, 9);  // an earlier one
  EXPECT_EQ(ledger.Introduce({}, {}).size(), 2u);
  ledger.Committed("job", 5, 10);
  EXPECT_EQ(ledger.Introduce({}, {}).size(), 1u);
}

TEST(Ledger, ManyExitsStayBounded) {
  Ledger ledger({});
  v1::ExitStatus exit;
  exit.set_stderr_tail(std::string(64 << 10, 'x'));
  for (int64_t rank = 0; rank < 1000; ++rank) {
    ledger.Exited({"job", 1, 5, rank}, exit, absl::Seconds(1));
  }
  const auto words = ledger.Introduce({}, {});
  EXPECT_LE(words.at(0).ByteSizeLong(), 10u << 20);
  EXPECT_EQ(words.at(0).hello().exited(words.at(0).hello().exited_size() - 1).rank().rank(), 999);
}

}  // namespace
}  // namespace mega::daemon
