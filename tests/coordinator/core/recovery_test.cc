// After a failure: again where it was, as long as that makes sense.
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/core/cluster.h"

namespace mega::core {
namespace {

using testing::HasSubstr;

// One rank on one node; ends it as told and lets back-offs pass.
struct OneRank {
  Cluster cluster;
  OneRank() {
    cluster.Hello("a", {.devices = 1});
    cluster.Submit("job", 1, [](v1::CoreSubmit& submit) {
      submit.mutable_resolved_spec()->mutable_recovery()->set_no_progress_cycles(3);
      submit.mutable_resolved_spec()->mutable_recovery()->set_max_restarts(5);
    });
  }
  void Fail(int64_t at_step) {
    if (at_step > 0) cluster.StepDone("job", at_step);
    cluster.Exit("job", 0, 1);
    cluster.Run(absl::Seconds(3));
  }
};

TEST(Recovery, StopsAllRanksThenStartsThemWhereTheyWere) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.Save(uid, 20, 0);
  cluster.Save(uid, 20, 1);
  cluster.StepDone(uid, 25);
  const int64_t epoch = cluster.attempt(uid).epoch();
  cluster.Exit(uid, 1, 0, 9);
  EXPECT_EQ(cluster.attempt(uid).failed_rank(), 1);
  EXPECT_EQ(cluster.Count("a", v1::Command::kStopRanks), 1);
  EXPECT_EQ(cluster.Count("b", v1::Command::kStopRanks), 0) << "nothing runs there";
  EXPECT_EQ(cluster.attempt(uid).number(), 1) << "rank 0 may still run";

  cluster.Exit(uid, 0, 0, 9, /*by_worker=*/true);
  EXPECT_EQ(cluster.attempt(uid).number(), 2);
  EXPECT_GT(cluster.attempt(uid).epoch(), epoch);
  EXPECT_EQ(cluster.attempt(uid).start_step(), 20);
  EXPECT_EQ(cluster.sent["a"].back().start_ranks().load().step(), 20);
  EXPECT_EQ(cluster.sent["a"].back().start_ranks().ranks(0), 0);
  EXPECT_EQ(cluster.sent["b"].back().start_ranks().ranks(0), 1);
  EXPECT_TRUE(cluster.job(uid).attempts(0).ranks(0).exit().killed_by_worker());
  EXPECT_EQ(cluster.job(uid).attempts(0).ranks(1).exit().signal(), 9);
}

// A peer feels the death before the dead process is reaped.
TEST(Recovery, ASignalIsTheCauseEvenWhereThePeerItFelledIsToldFirst) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.Exit(uid, 0, 1);
  EXPECT_EQ(cluster.attempt(uid).failed_rank(), 0);
  cluster.Exit(uid, 1, 0, 9);
  EXPECT_EQ(cluster.job(uid).attempts(0).failed_rank(), 1);
  EXPECT_THAT(cluster.job(uid).attempts(0).cause(), HasSubstr("rank 1"));
  EXPECT_EQ(cluster.attempt(uid).number(), 2);
}

TEST(Recovery, RanksThatAreStoppedAreNotTheCause) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.Exit(uid, 0, 1);
  cluster.Exit(uid, 1, 0, 9, /*by_worker=*/true);
  EXPECT_EQ(cluster.job(uid).attempts(0).failed_rank(), 0);
  EXPECT_THAT(cluster.job(uid).attempts(0).cause(), HasSubstr("rank 0"));
}

TEST(Recovery, ThreeAttemptsWithoutAStepGainedFailTheJob) {
  OneRank one;
  one.Fail(7);  // gains seven steps
  EXPECT_EQ(one.cluster.job("job").cycles_without_progress(), 0);
  one.Fail(7);
  one.Fail(3);
  EXPECT_EQ(one.cluster.attempt("job").number(), 4);
  one.Fail(0);
  EXPECT_EQ(one.cluster.job("job").phase(), v1::JOB_PHASE_FAILED);
  EXPECT_THAT(one.cluster.job("job").reason(), HasSubstr("gained no step"));
  EXPECT_THAT(one.cluster.job("job").reason(), HasSubstr("last words"));
}

// Case: newer checkpoints were damaged, each attempt saved further ones, and the job was failed.
TEST(Recovery, ANewCheckpointIsProgressWhereNewerOnesWereLost) {
  Cluster cluster;
  cluster.Hello("a", {.devices = 1});
  cluster.Submit("job", 1, [](v1::CoreSubmit& submit) {
    submit.mutable_resolved_spec()->mutable_recovery()->set_no_progress_cycles(3);
  });
  const auto end = [&](int code) {
    cluster.Exit("job", 0, code);
    cluster.Run(absl::Seconds(5));
  };
  cluster.StepDone("job", 500);
  for (const int64_t step : {10, 400}) cluster.Save("job", step, 0);
  end(1);
  end(65);
  ASSERT_EQ(cluster.attempt("job").start_step(), 10);
  for (const int64_t step : {20, 30, 40, 50}) {
    cluster.StepDone("job", step + 5);
    cluster.Save("job", step, 0);
    end(1);
    ASSERT_EQ(cluster.attempt("job").start_step(), step);
    EXPECT_EQ(cluster.job("job").cycles_without_progress(), 0);
  }
  EXPECT_FALSE(IsTerminal(cluster.job("job").phase()));
}

TEST(Recovery, ProgressClearsTheCountAndTheBudgetEndsIt) {
  OneRank one;
  for (int64_t step = 1; step <= 5; ++step) one.Fail(10 * step);
  EXPECT_EQ(one.cluster.job("job").phase(), v1::JOB_PHASE_STARTING);
  one.Fail(60);
  EXPECT_EQ(one.cluster.job("job").phase(), v1::JOB_PHASE_FAILED);
  EXPECT_THAT(one.cluster.job("job").reason(), HasSubstr("recovery.max_restarts is 5"));
}

TEST(Recovery, TheSecondRetryWithoutProgressWaits) {
  OneRank one;
  one.cluster.Exit("job", 0, 1);
  EXPECT_EQ(one.cluster.attempt("job").number(), 2) << "the first is immediate";
  one.cluster.Exit("job", 0, 1);
  one.cluster.Run(absl::Milliseconds(900));
  EXPECT_EQ(one.cluster.attempt("job").number(), 2);
  one.cluster.Run(absl::Milliseconds(300));
  EXPECT_EQ(one.cluster.attempt("job").number(), 3);
}

class PermanentExit : public testing::TestWithParam<int> {};
TEST_P(PermanentExit, IsNotTriedAgain) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.Exit(uid, 0, 1);  // fell over its peer, and was heard of first
  cluster.Exit(uid, 1, GetParam());
  EXPECT_EQ(cluster.job(uid).phase(), v1::JOB_PHASE_FAILED);
  EXPECT_THAT(cluster.job(uid).reason(), HasSubstr("last words"));
  EXPECT_EQ(cluster.job(uid).restarts(), 0);
}
INSTANTIATE_TEST_SUITE_P(Codes, PermanentExit, testing::Values(64, 93));

TEST(Recovery, AJobThatLostItsNodeStandsBeforeNewOnes) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.Submit("new", 1);
  cluster.silent = {"b"};
  cluster.Run(absl::Seconds(12));
  cluster.Exit(uid, 0, 1);
  EXPECT_EQ(JobView(cluster.state, uid).queue_position(), 1);
  EXPECT_EQ(cluster.job("new").phase(), v1::JOB_PHASE_QUEUED);
  cluster.Hello("c", {.devices = 2});
  EXPECT_EQ(cluster.job(uid).phase(), v1::JOB_PHASE_STARTING);
  EXPECT_EQ(cluster.job("new").phase(), v1::JOB_PHASE_STARTING);
}

TEST(Recovery, ACrashLoopKeepsBoundedRecords) {
  Cluster cluster;
  cluster.Hello("a", {.devices = 1});
  cluster.Submit("job", 1, [](v1::CoreSubmit& submit) {
    submit.mutable_resolved_spec()->mutable_recovery()->set_max_restarts(1'000'000);
  });
  for (int64_t i = 1; i <= 400; ++i) {
    cluster.StepDone("job", i);
    v1::WorkerMessage message;
    *message.mutable_rank_exited()->mutable_rank() = cluster.ref("job", 0);
    message.mutable_rank_exited()->mutable_exit()->set_code(1);
    message.mutable_rank_exited()->mutable_exit()->set_stderr_tail(std::string(1 << 20, 'x'));
    cluster.Say("a", message);
  }
  EXPECT_EQ(cluster.job("job").attempts_size(), 100);
  EXPECT_EQ(cluster.attempt("job").number(), 401);
  EXPECT_LT(cluster.job("job").ByteSizeLong(), 300'000u);
  EXPECT_EQ(cluster.state.durable.events.at("job").size(), kEventsPerJob + 1);
  EXPECT_EQ(cluster.job("job").attempts(98).ranks(0).exit().stderr_tail().size(), 64u << 10);
}

// Case: ranks that gave up at different moments of ten minutes never met again.
TEST(Recovery, RanksThatEndAndComeAtDifferentMomentsMeetInOneAttempt) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.Exit(uid, 1, 1);
  cluster.Run(absl::Minutes(10));
  EXPECT_EQ(cluster.attempt(uid).number(), 1) << "rank 0 may still run";
  cluster.Exit(uid, 0, 1);
  ASSERT_EQ(cluster.attempt(uid).number(), 2);

  const auto ready = [&](int64_t rank) {
    v1::WorkerMessage message;
    *message.mutable_rank_ready()->mutable_rank() = cluster.ref(uid, rank);
    message.mutable_rank_ready()->set_address("address");
    cluster.Say(rank == 0 ? "a" : "b", std::move(message));
  };
  const int64_t before = cluster.Count("a", v1::Command::kConnectRanks);
  ready(0);
  cluster.Run(absl::Minutes(10));
  EXPECT_EQ(cluster.Count("a", v1::Command::kConnectRanks), before) << "rank 1 is not there";
  ready(1);
  EXPECT_EQ(cluster.attempt(uid).number(), 2);
  EXPECT_EQ(cluster.Count("a", v1::Command::kConnectRanks), before + 1);
  EXPECT_EQ(cluster.sent["b"].back().connect_ranks().addresses_size(), 2);
}

// Case: of two dead nodes only the first was ever replaced.
TEST(Recovery, OfTwoLostNodesOneComesBackAndTheOtherIsReplaced) {
  Cluster cluster;
  for (const char* node : {"a", "b", "c"}) cluster.Hello(node, {.devices = 1});
  cluster.Submit("job", 3);
  cluster.Ready("job");
  cluster.StepDone("job", 1);
  cluster.silent = {"a", "b"};
  cluster.Run(absl::Minutes(40));  // their horizons
  cluster.Exit("job", 2, 1, 0, /*by_worker=*/true);
  EXPECT_EQ(cluster.job("job").phase(), v1::JOB_PHASE_RECOVERING);
  cluster.Hello("d", {.devices = 1});
  EXPECT_EQ(cluster.job("job").phase(), v1::JOB_PHASE_RECOVERING) << "one is missing";
  cluster.silent = {"a"};
  cluster.Hello("b", {.devices = 1, .incarnation = 2});
  cluster.Run(absl::Minutes(2));  // any back-off
  ASSERT_EQ(cluster.job("job").phase(), v1::JOB_PHASE_STARTING);
  std::set<NodeId> nodes;
  for (const v1::RankState& rank : cluster.attempt("job").ranks()) nodes.insert(rank.node());
  EXPECT_EQ(nodes, (std::set<NodeId>{"b", "c", "d"}));
}

}  // namespace
}  // namespace mega::core
