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

TEST(Ledger, LeavesAClusterOnlyWithoutRanksAndThenWithoutItsPast) {
  v1::WorkerRecord record;  // of release 0.1
  record.set_last_command_seq(7);
  Ledger ledger(std::move(record));
  EXPECT_FALSE(*ledger.Join(""));
  EXPECT_FALSE(*ledger.Join("ours")) << "what it kept is of the first that names itself";
  EXPECT_TRUE(ledger.Accept(StartOrder(8, {0})));
  EXPECT_FALSE(*ledger.Join("ours"));
  EXPECT_EQ(ledger.Join("theirs").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ledger.Introduce({}, absl::Seconds(1)).at(0).hello().cluster_id(), "ours");

  ledger.Exited(kRank, {}, absl::Seconds(2));
  ledger.SetDurable(8);
  EXPECT_TRUE(*ledger.Join("theirs"));
  const v1::Hello hello = ledger.Introduce({}, absl::Seconds(3)).at(0).hello();
  EXPECT_EQ(hello.cluster_id(), "theirs");
  EXPECT_EQ(hello.last_command_seq(), 0);
  EXPECT_EQ(hello.exited_size(), 0);
  EXPECT_FALSE(ledger.Accept(StartOrder(9, {0}), /*generation=*/0)) << "it was on its way";
  ledger.SetDurable(8);
  EXPECT_EQ(ledger.durable_seq(), 0);
  EXPECT_TRUE(ledger.Accept(StartOrder(1, {0}), ledger.generation()));
}

v1::ExitStatus Killed(size_t tail_bytes = 0) {
  v1::ExitStatus exit;
  exit.set_signal(9);
  exit.set_stderr_tail(std::string(tail_bytes, 'x'));
  return exit;
}

// Case: the coordinator answered heartbeats while its disk was late, and crashed. The worker had
// forgotten the exit by then, so a rank that had ended well counted as lost.
TEST(Ledger, AnExitIsToldUntilALaterAttemptOfItsJobStarts) {
  Ledger ledger({});
  ledger.Accept(StartOrder(1, {0}));
  ledger.Exited(kRank, Killed(), absl::Seconds(10));
  EXPECT_EQ(ledger.Record().ranks_size(), 0);
  for (int session = 2; session < 5; ++session) {
    const auto words = ledger.Introduce({}, session * absl::Minutes(1));
    EXPECT_EQ(words.at(0).hello().running_size(), 0);
    ASSERT_EQ(words.at(0).hello().exited_size(), 1);
    EXPECT_EQ(words.at(0).hello().exited(0).exit().signal(), 9);
    ledger.Heard((session + 1) * absl::Minutes(1));
  }
  v1::Command same = StartOrder(2, {1});
  ledger.Accept(same);
  EXPECT_EQ(ledger.Record().exited_size(), 1);
  v1::Command later = StartOrder(3, {0});
  later.mutable_start_ranks()->set_attempt(2);
  later.mutable_start_ranks()->set_epoch(6);
  ledger.Accept(later);
  EXPECT_EQ(ledger.Record().exited_size(), 0);
}

TEST(Ledger, TheExitOfAJobThatNeverStartsAgainGoesAfterADay) {
  v1::WorkerRecord record;  // of the last incarnation
  *record.add_exited()->mutable_rank() = kRank.ToProto();
  Ledger ledger(record);
  ledger.Heard(absl::Hours(1000));  // not told yet
  EXPECT_EQ(ledger.Record().exited_size(), 1);
  ledger.Introduce({}, absl::Hours(1000));
  ledger.Heard(absl::Hours(1023));
  EXPECT_EQ(ledger.Record().exited_size(), 1);
  ledger.Heard(absl::Hours(1025));
  EXPECT_EQ(ledger.Record().exited_size(), 0);
}

TEST(Ledger, TheExitOfAnAttemptWithARankHereIsNeverForgotten) {
  Ledger ledger({});
  ledger.Accept(StartOrder(1, {0, 1}));
  ledger.Exited(kRank, Killed(), absl::Seconds(1));
  ledger.Heard(absl::Hours(1000));
  for (int64_t rank = 0; rank < 2 * Ledger::kMaxExits; ++rank) {
    ledger.Exited({"other", 1, 5, rank}, Killed(), absl::Hours(1000));
    ledger.Heard(absl::Hours(1000) + absl::Seconds(1));
  }
  EXPECT_EQ(ledger.Record().exited_size(), Ledger::kMaxExits);
  EXPECT_EQ(RankKey::From(ledger.Record().exited(0).rank()), kRank);
}

TEST(Ledger, OnlyExitsThatWereHeardMakeRoom) {
  Ledger ledger({});
  for (int64_t rank = 0; rank <= Ledger::kMaxExits; ++rank) {
    ledger.Exited({"job", 1, 5, rank}, Killed(), absl::Seconds(1));
  }
  EXPECT_EQ(ledger.Record().exited_size(), Ledger::kMaxExits + 1);
  ledger.Heard(absl::Seconds(2));
  ledger.Exited({"job", 1, 5, 1000}, Killed(), absl::Seconds(3));
  EXPECT_EQ(ledger.Record().exited(0).rank().rank(), 1);
}

TEST(Ledger, AnExitThatWasHeardKeepsOnlyTheEndOfItsStderr) {
  Ledger ledger({});
  ledger.Exited(kRank, Killed(64 << 10), absl::Seconds(1));
  ledger.Heard(absl::Seconds(1));  // what was sent before it
  EXPECT_EQ(ledger.Record().exited(0).exit().stderr_tail().size(), 64u << 10);
  ledger.Heard(absl::Seconds(2));
  EXPECT_EQ(ledger.Record().exited(0).exit().stderr_tail().size(), Ledger::kShortTail);
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
  ledger.Rejected("job", 5, 11);
  EXPECT_EQ(ledger.Introduce({}, {}).size(), 2u);
  ledger.Committed("job", 5, 10);
  EXPECT_EQ(ledger.Introduce({}, {}).size(), 1u);
}

TEST(Ledger, ARejectedPartIsSettledAndTheOthersAreNot) {
  Ledger ledger({});
  v1::WorkerMessage part;
  for (const int64_t step : {10, 20, 30}) {
    part.mutable_checkpoint_part()->set_step(step);
    ledger.Owe(kRank, step, part);
  }
  ledger.Rejected("job", 5, 20);
  const auto words = ledger.Introduce({}, {});
  ASSERT_EQ(words.size(), 3u);
  EXPECT_EQ(words[1].checkpoint_part().step(), 10);
  EXPECT_EQ(words[2].checkpoint_part().step(), 30);
}

v1::WorkerMessage Part(int64_t step, size_t bytes) {
  v1::WorkerMessage message;
  message.mutable_checkpoint_part()->set_step(step);
  message.mutable_checkpoint_part()->set_directory(std::string(bytes, 'x'));
  return message;
}

std::vector<int64_t> OwedSteps(Ledger& ledger) {
  std::vector<int64_t> steps;
  for (const v1::WorkerMessage& word : ledger.Introduce({}, {})) {
    if (word.has_checkpoint_part()) steps.push_back(word.checkpoint_part().step());
  }
  return steps;
}

// Case: a coordinator that commits nothing, and ranks that save every step.
TEST(Ledger, PartsOfTheNewestStepsAreOwed) {
  Ledger ledger({});
  for (int64_t step = 1; step <= 100; ++step) {
    EXPECT_EQ(ledger.Owe(kRank, step, Part(step, 0)), step <= Ledger::kStepsOwed ? 0 : 1);
    EXPECT_EQ(ledger.Owe(kRank, step, Part(step, 0)), 0);  // told twice
  }
  EXPECT_EQ(OwedSteps(ledger), std::vector<int64_t>({97, 98, 99, 100}));
}

TEST(Ledger, OwedPartsAreBoundedInBytesAndTakeNoExitWithThem) {
  constexpr size_t kBytes = Ledger::kMaxOwed / 4;
  Ledger ledger({});
  ledger.Exited({"job", 1, 5, 9}, Killed(), absl::Seconds(1));
  for (int64_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(ledger.Owe({"job", 1, 5, rank}, 1, Part(1, kBytes)), 0);
  }
  EXPECT_EQ(ledger.Owe(kRank, 2, Part(2, kBytes)), 1);
  EXPECT_EQ(OwedSteps(ledger), std::vector<int64_t>({2, 1, 1}));
  ledger.Exited({"job", 1, 5, 1}, Killed(), absl::Seconds(1));  // and with it what it owed
  EXPECT_EQ(ledger.Owe(kRank, 3, Part(3, kBytes)), 0);
  EXPECT_EQ(ledger.Record().exited_size(), 2);
}

TEST(Ledger, ManyExitsStayBounded) {
  Ledger ledger({});
  v1::ExitStatus exit;
  exit.set_stderr_tail(std::string(64 << 10, 'x'));
  for (int64_t rank = 0; rank < 1000; ++rank) {
    ledger.Exited({"job", 1, 5, rank}, exit, absl::Seconds(1));
  }
  EXPECT_LE(ledger.Record().ByteSizeLong(), Ledger::kMaxTails + (1u << 20));
  const auto words = ledger.Introduce({}, {});
  EXPECT_LE(words.at(0).ByteSizeLong(), 10u << 20);
  EXPECT_EQ(words.at(0).hello().exited(words.at(0).hello().exited_size() - 1).rank().rank(), 999);
}

}  // namespace
}  // namespace mega::daemon
