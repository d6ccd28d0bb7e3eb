// An attempt that stands still: when it counts as hanging, who is named, and what is no hang.
#include "coordinator/core/health/hang.h"

#include "base/clock.h"
#include "coordinator/core/health/watch.h"
#include "coordinator/core/jobs/attempt.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/core/cluster.h"

namespace mega::core {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

struct At {
  std::string phase = "step";
  int64_t step = 2;
  int64_t seq = 0;
  std::string group = "dp";
};

void Tell(Cluster& cluster, int64_t rank, const At& at) {
  v1::WorkerMessage message;
  v1::RankProgress& progress = *message.mutable_rank_progress();
  *progress.mutable_rank() = cluster.ref("job", rank);
  progress.set_phase(at.phase);
  progress.set_step(at.step);
  progress.set_collective_seq(at.seq);
  progress.set_group(at.seq > 0 ? at.group : "");
  cluster.Say(cluster.attempt("job").ranks(static_cast<int>(rank)).node(), std::move(message));
}

// Two ranks on nodes a and b that have made a step and told where they are.
struct Pair {
  Cluster cluster;
  explicit Pair(const std::function<void(v1::JobSpec&)>& edit = [](v1::JobSpec&) {}) {
    cluster.Hello("a", {.devices = 1});
    cluster.Hello("b", {.devices = 1});
    cluster.Submit("job", 2,
                   [&](v1::CoreSubmit& submit) { edit(*submit.mutable_resolved_spec()); });
    cluster.Ready("job");
    cluster.StepDone("job", 1);
  }
  bool hangs() const {
    const auto events = cluster.events("job");
    return std::ranges::count(events, "HANG") > 0;
  }
  const v1::JobEvent& verdict() const {
    for (const auto& [revision, event] : cluster.state.durable.events.at("job")) {
      if (event.reason() == "HANG") return event;
    }
    static const auto* none = new v1::JobEvent;
    return *none;
  }
  std::string field(const std::string& key) const {
    const auto it = verdict().fields().find(key);
    return it == verdict().fields().end() ? "-" : it->second;
  }
};

void SetSeconds(google::protobuf::Duration* span, int64_t seconds) { span->set_seconds(seconds); }

TEST(Hang, NamesTheRankThatNeverJoinedAndItsNode) {
  Pair pair;
  Tell(pair.cluster, 0, {.step = 9, .seq = 41});
  Tell(pair.cluster, 1, {.step = 9, .seq = 40});
  pair.cluster.Run(absl::Seconds(29));
  EXPECT_FALSE(pair.hangs());
  pair.cluster.Run(absl::Seconds(2));
  ASSERT_TRUE(pair.hangs());
  EXPECT_EQ(pair.field("rank"), "1");
  EXPECT_EQ(pair.field("node"), "b");
  EXPECT_EQ(pair.field("collective_seq"), "40");
  EXPECT_THAT(pair.verdict().message(),
              HasSubstr("rank 1 on node 'b' never joined collective 41 of group dp"));
  EXPECT_EQ(pair.cluster.attempt("job").failed_node(), "b");
  EXPECT_THAT(pair.cluster.attempt("job").cause(), HasSubstr("never joined"));
}

// Case: the newest word of a rank was of ten collectives ago, and it was named for one that had not
// even connected.
TEST(Hang, WhoEnteredNoCollectiveIsBehindAllThatDid) {
  v1::Attempt attempt;
  attempt.set_state(v1::ATTEMPT_STATE_RUNNING);
  v1::JobWatch watch;
  for (int64_t rank = 0; rank < 3; ++rank) {
    v1::RankState& state = *attempt.add_ranks();
    state.set_rank(rank);
    state.set_node("n" + std::to_string(rank));
    v1::RankProgress& progress = *watch.add_ranks()->mutable_progress();
    progress.set_phase(rank == 2 ? "connecting" : "step");
    if (rank == 2) continue;
    progress.set_step(rank == 0 ? 251 : 241);
    progress.set_group("dp");
    progress.set_collective_seq(progress.step());
  }
  const Laggard laggard = FindLaggard(attempt, watch);
  EXPECT_EQ(laggard.rank, 2);
  EXPECT_EQ(laggard.node, "n2");
  EXPECT_THAT(laggard.what, HasSubstr("rank 2 on node 'n2' has entered no collective"));
}

// Case: one rank ran for ever after all others had completed.
TEST(Hang, ARankThatStandsStillAfterTheOthersHaveCompletedIsEnded) {
  Pair pair;
  Tell(pair.cluster, 0, {.step = 9, .seq = 41});
  Tell(pair.cluster, 1, {.step = 9, .seq = 41});
  pair.cluster.Exit("job", 1, 0);
  pair.cluster.Run(absl::Seconds(31));
  ASSERT_TRUE(pair.hangs());
  EXPECT_EQ(pair.cluster.sent["a"].back().kind_case(), v1::Command::kStopRanks);
  EXPECT_EQ(pair.cluster.attempt("job").failed_node(), "a");
  EXPECT_EQ(pair.cluster.Count("b", v1::Command::kStopRanks), 0) << "nothing runs there";
}

TEST(Hang, EndsTheRanksBySigkillAndTheLadderGoesOnFromTheNode) {
  Pair pair;
  Tell(pair.cluster, 0, {.seq = 41});
  Tell(pair.cluster, 1, {.seq = 40});
  pair.cluster.Run(absl::Seconds(31));
  const v1::Command stop = pair.cluster.sent["b"].back();
  ASSERT_TRUE(stop.has_stop_ranks());
  EXPECT_EQ(FromProto(stop.stop_ranks().grace()), absl::ZeroDuration());
  EXPECT_THAT(stop.stop_ranks().reason(), HasSubstr("hangs"));
  pair.cluster.Exit("job", 0, 0, 9, true);
  pair.cluster.Exit("job", 1, 0, 9, true);
  const v1::Job& job = pair.cluster.job("job");
  ASSERT_EQ(job.recoveries_size(), 1);
  EXPECT_EQ(job.recoveries(0).node(), "b");
  EXPECT_EQ(job.recoveries(0).rung(), "retry");
  EXPECT_EQ(job.attempts_size(), 2);
}

TEST(Hang, ASecondHangOfANodeTakesASpare) {
  Pair pair;
  pair.cluster.Hello("c", {.devices = 1});
  for (int hang = 0; hang < 2; ++hang) {
    Tell(pair.cluster, 0, {.step = hang, .seq = 41});
    Tell(pair.cluster, 1, {.step = hang, .seq = 40});
    pair.cluster.Run(absl::Seconds(31));
    pair.cluster.Exit("job", 0, 0, 9, true);
    pair.cluster.Exit("job", 1, 0, 9, true);
    pair.cluster.Run(absl::Seconds(1));
    pair.cluster.Ready("job");
    pair.cluster.StepDone("job", 2 + hang);
  }
  EXPECT_EQ(NodesOf(pair.cluster.attempt("job")), (std::set<NodeId>{"a", "c"}));
}

TEST(Hang, WhoMovesDoesNotHang) {
  Pair pair;
  for (int64_t step = 2; step < 60; ++step) {
    Tell(pair.cluster, 0, {.step = step, .seq = 40});
    pair.cluster.Run(absl::Seconds(20));
  }
  EXPECT_FALSE(pair.hangs());
}

TEST(Hang, TheSameWordAgainIsNoMovement) {
  Pair pair;
  for (int i = 0; i < 40; ++i) {
    Tell(pair.cluster, 0, {.seq = 41});
    Tell(pair.cluster, 1, {.seq = 40});
    pair.cluster.Run(absl::Seconds(1));
  }
  EXPECT_TRUE(pair.hangs());
}

TEST(Hang, LongStepsAreAllowedForFromWhatWasSeen) {
  Pair pair;
  v1::CoreEvent event;
  v1::StepReport& report = *event.mutable_step_report();
  report.set_job_uid("job");
  report.set_attempt(1);
  report.set_epoch(pair.cluster.attempt("job").epoch());
  report.set_step(2);
  report.set_step_seconds(20);
  pair.cluster.Feed(event);
  Tell(pair.cluster, 0, {.seq = 41});
  pair.cluster.Run(absl::Seconds(99));
  EXPECT_FALSE(pair.hangs());
  pair.cluster.Run(absl::Seconds(2));
  EXPECT_TRUE(pair.hangs());
}

TEST(Hang, StepTimeoutIsObeyed) {
  Pair pair([](v1::JobSpec& spec) {
    SetSeconds(spec.mutable_health()->mutable_hang()->mutable_step_timeout(), 5);
  });
  Tell(pair.cluster, 0, {.seq = 41});
  pair.cluster.Run(absl::Seconds(4));
  EXPECT_FALSE(pair.hangs());
  pair.cluster.Run(absl::Seconds(2));
  ASSERT_TRUE(pair.hangs());
  EXPECT_THAT(pair.verdict().message(), HasSubstr("health.hang.step_timeout"));
}

TEST(Hang, SavingHasATimeoutOfItsOwn) {
  Pair pair([](v1::JobSpec& spec) {
    SetSeconds(spec.mutable_health()->mutable_hang()->mutable_checkpoint_timeout(), 50);
  });
  Tell(pair.cluster, 0, {.phase = "saving", .seq = 41});
  Tell(pair.cluster, 1, {.phase = "saving", .seq = 41});
  pair.cluster.Run(absl::Seconds(49));
  EXPECT_FALSE(pair.hangs());
  pair.cluster.Run(absl::Seconds(2));
  EXPECT_TRUE(pair.hangs());
  EXPECT_EQ(pair.field("rank"), "");  // both are at the same place
  EXPECT_EQ(pair.cluster.attempt("job").failed_node(), "");
}

TEST(Hang, EvaluationMayTakeAsManyStepsAsItHas) {
  Pair pair([](v1::JobSpec& spec) { spec.mutable_training()->set_eval_steps(10); });
  Tell(pair.cluster, 0, {.phase = "evaluating", .seq = 41});
  pair.cluster.Run(absl::Seconds(299));
  EXPECT_FALSE(pair.hangs());
  pair.cluster.Run(absl::Seconds(2));
  EXPECT_TRUE(pair.hangs());
}

TEST(Hang, BeforeTheFirstStepWhoIsNotReadyIsNamed) {
  Cluster cluster;
  cluster.Hello("a", {.devices = 1});
  cluster.Hello("b", {.devices = 1});
  cluster.Submit("job", 2, [](v1::CoreSubmit& submit) {
    SetSeconds(submit.mutable_resolved_spec()
                   ->mutable_health()
                   ->mutable_hang()
                   ->mutable_first_step_timeout(),
               60);
  });
  v1::WorkerMessage ready;
  *ready.mutable_rank_ready()->mutable_rank() = cluster.ref("job", 1);
  cluster.Say("b", ready);
  cluster.Run(absl::Seconds(59));
  EXPECT_THAT(cluster.events("job"), Not(Contains("HANG")));
  cluster.Run(absl::Seconds(2));
  EXPECT_THAT(cluster.events("job"), Contains("HANG"));
  EXPECT_EQ(cluster.attempt("job").failed_node(), "a");
  EXPECT_THAT(cluster.attempt("job").cause(), HasSubstr("rank 0 on node 'a' is not ready"));
}

TEST(Hang, WorkersThatTellNothingAreNotJudged) {
  Pair pair;  // of release 0.1
  pair.cluster.Run(absl::Hours(2));
  EXPECT_FALSE(pair.hangs());
}

TEST(Hang, ASilentNodeIsNoHang) {
  Pair pair;
  pair.cluster.state.options.lease = absl::Hours(10);  // so that it is not lost meanwhile
  Tell(pair.cluster, 0, {.seq = 41});
  Tell(pair.cluster, 1, {.seq = 40});
  pair.cluster.Run(absl::Seconds(20));
  pair.cluster.silent = {"b"};
  pair.cluster.Run(absl::Seconds(200));
  EXPECT_FALSE(pair.hangs());
  pair.cluster.silent = {};  // and then from its return on
  pair.cluster.Run(absl::Seconds(25));
  EXPECT_FALSE(pair.hangs());
  pair.cluster.Run(absl::Seconds(10));
  EXPECT_TRUE(pair.hangs());
}

TEST(Hang, AClosedSessionCountsAfreshFromTheNext) {
  Pair pair;
  Tell(pair.cluster, 0, {.seq = 41});
  Tell(pair.cluster, 1, {.seq = 40});
  pair.cluster.Run(absl::Seconds(28));
  pair.cluster.CloseSession("b");
  pair.cluster.Run(absl::Seconds(4));
  pair.cluster.Hello("b", {.devices = 1, .running = {pair.cluster.ref("job", 1)}});
  pair.cluster.Run(absl::Seconds(28));
  EXPECT_FALSE(pair.hangs());
}

TEST(Hang, APauseOfTheLoopIsNoHang) {
  Pair pair;
  Tell(pair.cluster, 0, {.seq = 41});
  pair.cluster.Run(absl::Seconds(28));
  pair.cluster.Pause(absl::Hours(1));
  pair.cluster.Run(absl::Seconds(28));
  EXPECT_FALSE(pair.hangs());
}

TEST(Hang, AfterARestartOfTheCoordinatorItCountsAfreshAndStillEnds) {
  Pair pair;
  Tell(pair.cluster, 0, {.seq = 41});
  Tell(pair.cluster, 1, {.seq = 40});
  pair.cluster.Run(absl::Seconds(28));
  pair.cluster.Restart();
  for (const auto& [node, rank] : {std::pair("a", 0), std::pair("b", 1)}) {
    pair.cluster.Hello(node, {.devices = 1, .running = {pair.cluster.ref("job", rank)}});
    Tell(pair.cluster, rank, {.seq = 41 - rank});  // a worker tells it with each hello
  }
  pair.cluster.Run(absl::Seconds(28));
  EXPECT_FALSE(pair.hangs());
  pair.cluster.Run(absl::Seconds(4));
  EXPECT_EQ(pair.field("rank"), "1");
}

TEST(Hang, ASnapshotKeepsWhatIsKnown) {
  Pair pair;
  Tell(pair.cluster, 0, {.seq = 41});
  Tell(pair.cluster, 1, {.seq = 40});
  pair.cluster.Run(absl::Seconds(20));
  v1::CoreSnapshot stored;
  ASSERT_TRUE(stored.ParseFromString(ToSnapshot(pair.cluster.state).SerializeAsString()));
  pair.cluster.state = FromSnapshot(stored);
  pair.cluster.Run(absl::Seconds(11));
  ASSERT_TRUE(pair.hangs());
  EXPECT_EQ(pair.field("rank"), "1");
}

TEST(Hang, ALateCopyOfAnEarlierWordChangesNothing) {
  Pair pair;
  Tell(pair.cluster, 0, {.step = 9, .seq = 41});
  Tell(pair.cluster, 1, {.step = 9, .seq = 40});
  pair.cluster.Run(absl::Seconds(20));
  Tell(pair.cluster, 0, {.step = 5, .seq = 20});
  pair.cluster.Run(absl::Seconds(11));
  ASSERT_TRUE(pair.hangs());  // nor is it a movement
  EXPECT_EQ(pair.field("rank"), "1");
}

TEST(Hang, WordsOfOtherNodesAndOldEpochsChangeNothing) {
  Pair pair;
  Tell(pair.cluster, 0, {.seq = 41});
  v1::WorkerMessage message;
  v1::RankProgress& progress = *message.mutable_rank_progress();
  for (int i = 0; i < 31; ++i) {
    *progress.mutable_rank() = pair.cluster.ref("job", 1);
    progress.set_phase("step");
    progress.set_step(i);
    pair.cluster.Say("a", message);
    progress.mutable_rank()->set_epoch(99);
    pair.cluster.Say("b", message);
    progress.mutable_rank()->set_epoch(pair.cluster.attempt("job").epoch());
    for (const int64_t rank : {int64_t{-1}, int64_t{2}, INT64_MAX}) {
      progress.mutable_rank()->set_rank(rank);
      pair.cluster.Say("b", message);
    }
    pair.cluster.Run(absl::Seconds(1));
  }
  EXPECT_TRUE(pair.hangs());
}

// ---- who is named

struct Gang {
  v1::Attempt attempt;
  v1::JobWatch watch;
  explicit Gang(const std::vector<At>& ranks, bool one_node = false) {
    attempt.set_state(v1::ATTEMPT_STATE_RUNNING);
    for (const At& at : ranks) {
      v1::RankState& rank = *attempt.add_ranks();
      rank.set_rank(attempt.ranks_size() - 1);
      rank.set_node(one_node ? "n" : "n" + std::to_string(rank.rank()));
      rank.set_ready(true);
      v1::RankProgress& progress = *watch.add_ranks()->mutable_progress();
      progress.set_phase(at.phase);
      progress.set_step(at.step);
      progress.set_collective_seq(at.seq);
      progress.set_group(at.group);
    }
  }
  Laggard Find() const { return FindLaggard(attempt, watch); }
};

TEST(Laggard, IsTheLowestOfItsGroup) {
  EXPECT_EQ(Gang({{.seq = 7}, {.seq = 5}, {.seq = 6}, {.seq = 7}}).Find().rank, 1);
  // Numbers of different groups do not compare.
  EXPECT_EQ(Gang({{.seq = 900, .group = "tp"},
                  {.seq = 899, .group = "tp"},
                  {.seq = 3, .group = "dp"},
                  {.seq = 3, .group = "dp"}})
                .Find()
                .rank,
            1);
}

TEST(Laggard, IsTheOneInAnotherPhase) {
  EXPECT_EQ(Gang({{.seq = 7}, {.seq = 7}, {.phase = "data", .seq = 7}}).Find().rank, 2);
}

TEST(Laggard, IsTheOneThatHasToldNothing) {
  EXPECT_EQ(Gang({{.phase = "", .group = ""}, {.seq = 7}, {.seq = 7}}).Find().rank, 0);
}

TEST(Laggard, IsNobodyWhenAllStandTogetherAndTheNodeWhenItIsTheOnlyOne) {
  EXPECT_EQ(Gang({{.seq = 7}, {.seq = 7}}).Find().rank, -1);
  EXPECT_EQ(Gang({{.seq = 7}, {.seq = 7}}).Find().node, "");
  EXPECT_EQ(Gang({{.seq = 7}, {.seq = 7}}, true).Find().node, "n");
}

}  // namespace
}  // namespace mega::core
