// What is done after a failure: the job's rules, its ladder, and what its budgets leave.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/core/cluster.h"

namespace mega::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// One rank of node a; b, where there is one, is free.
struct Ladder {
  Cluster cluster;
  explicit Ladder(const std::function<void(v1::Recovery&)>& edit, bool has_other = true) {
    cluster.Hello("a", {.devices = 1});
    cluster.Submit("job", 1, [&](v1::CoreSubmit& submit) {
      v1::Recovery& recovery = *submit.mutable_resolved_spec()->mutable_recovery();
      recovery.set_no_progress_cycles(1000);
      edit(recovery);
    });
    if (has_other) cluster.Hello("b", {.devices = 1});
  }
  void Fail(int code, int signal = 0, const std::string& stderr_tail = "", bool by_worker = false) {
    v1::WorkerMessage message;
    *message.mutable_rank_exited()->mutable_rank() = cluster.ref("job", 0);
    v1::ExitStatus& exit = *message.mutable_rank_exited()->mutable_exit();
    exit.set_code(code);
    exit.set_signal(signal);
    exit.set_stderr_tail(stderr_tail);
    exit.set_killed_by_worker(by_worker);
    cluster.Say(node(), message);
    cluster.Run(absl::Minutes(2));  // any back-off
  }
  const v1::Job& job() const { return cluster.job("job"); }
  NodeId node() const { return cluster.attempt("job").ranks(0).node(); }
  std::vector<std::string> rungs() const {
    std::vector<std::string> rungs;
    for (const v1::RecoveryRecord& record : job().recoveries()) rungs.push_back(record.rung());
    return rungs;
  }
};

TEST(Rules, TheFirstThatIsAboutTheFailureDecides) {
  Ladder ladder([](v1::Recovery& recovery) {
    recovery.add_rules("exit 7 -> spare");
    recovery.add_rules("signal SIGBUS -> spare");
    recovery.add_rules("log out of memory -> stop");
    recovery.add_rules("log out -> retry");
  });
  ladder.Fail(1, 0, "a way out\n");
  EXPECT_EQ(ladder.node(), "a");
  ladder.Fail(7, 0, "out of memory");
  EXPECT_EQ(ladder.node(), "b");
  ladder.Fail(0, 9, "CUDA: out of memory, tried 3 GiB\n");
  EXPECT_EQ(ladder.job().phase(), v1::JOB_PHASE_FAILED);
  EXPECT_THAT(ladder.job().reason(), HasSubstr("recovery.rules[2] 'log out of memory -> stop'"));
  EXPECT_THAT(ladder.job().reason(), HasSubstr("signal 9 (SIGKILL)"));
  EXPECT_THAT(ladder.rungs(), ElementsAre("retry", "spare", "stop"));
  EXPECT_EQ(ladder.job().recoveries(0).decided_by(), "recovery.rules[3] 'log out -> retry'");
  EXPECT_THAT(ladder.job().recoveries(1).nodes_out(), ElementsAre("a"));
  EXPECT_THAT(ladder.job().recoveries(1).nodes_in(), ElementsAre("b"));
  EXPECT_EQ(ladder.job().attempts(1).rung(), "retry");
}

TEST(Rules, WhatTheWorkerEndedIsAboutNoRule) {
  Ladder ladder([](v1::Recovery& recovery) { recovery.add_rules("signal 9 -> stop"); });
  ladder.Fail(0, 9, "", /*by_worker=*/true);
  EXPECT_EQ(ladder.job().phase(), v1::JOB_PHASE_STARTING);
  ladder.Fail(0, 9);
  EXPECT_EQ(ladder.job().phase(), v1::JOB_PHASE_FAILED);
}

TEST(Rules, ANodeThatARuleNamedIsNotTakenAgainInTheWindow) {
  Ladder ladder(
      [](v1::Recovery& recovery) {
        recovery.add_rules("log ECC -> spare");
        recovery.mutable_budgets()->mutable_window()->set_seconds(3600);
      },
      /*has_other=*/false);
  ladder.Fail(1, 0, "uncorrectable ECC error");
  EXPECT_EQ(ladder.job().phase(), v1::JOB_PHASE_RECOVERING);
  EXPECT_THAT(ladder.job().reason(), HasSubstr("waiting"));
  EXPECT_THAT(JobView(ladder.cluster.state, "job").excluded_nodes(), ElementsAre("a"));
  ladder.cluster.Run(absl::Minutes(57));
  EXPECT_EQ(ladder.job().phase(), v1::JOB_PHASE_RECOVERING);
  ladder.cluster.Run(absl::Minutes(2));
  EXPECT_EQ(ladder.job().phase(), v1::JOB_PHASE_STARTING);
  EXPECT_EQ(ladder.node(), "a");
}

TEST(Rules, WithoutBudgetTheJobStops) {
  Ladder ladder([](v1::Recovery& recovery) {
    recovery.add_rules("signal 7 -> retry");
    recovery.mutable_budgets()->set_retry(1);
  });
  ladder.Fail(0, 7);
  ladder.Fail(0, 7);
  EXPECT_EQ(ladder.job().phase(), v1::JOB_PHASE_FAILED);
  EXPECT_THAT(ladder.job().reason(), HasSubstr("recovery.budgets.retry is 1 within 24h"));
}

TEST(Ladder, ANodeThatFailsAgainIsLeftOutWhereOthersHaveRoom) {
  Ladder ladder([](v1::Recovery&) {});
  ladder.Fail(1);
  EXPECT_EQ(ladder.node(), "a");
  ladder.Fail(1);
  EXPECT_EQ(ladder.node(), "b");
  EXPECT_THAT(ladder.job().recoveries(1).decided_by(), HasSubstr("blamed on node 'a'"));
  ladder.Fail(1);
  ladder.Fail(1);  // b failed twice too, but there is nothing else
  EXPECT_EQ(ladder.node(), "b");
  EXPECT_THAT(ladder.rungs(), ElementsAre("retry", "spare", "retry", "retry"));
}

TEST(Ladder, ALostNodeIsReplacedEvenByOneThatWasLeftOut) {
  Ladder ladder([](v1::Recovery& recovery) { recovery.set_node_failures(1); });
  ladder.Fail(1);
  EXPECT_EQ(ladder.node(), "b");
  ladder.cluster.silent = {"b"};
  ladder.cluster.Run(absl::Minutes(40));  // its horizon
  EXPECT_EQ(ladder.node(), "a");
  EXPECT_EQ(ladder.job().phase(), v1::JOB_PHASE_STARTING);
  EXPECT_EQ(ladder.job().recoveries(1).node(), "b");
}

TEST(Ladder, StopsWhereItSaysSo) {
  Ladder ladder(
      [](v1::Recovery& recovery) {
        for (const char* rung : {"retry", "spare", "stop"}) recovery.add_ladder(rung);
        recovery.mutable_budgets()->set_retry(2);
      },
      /*has_other=*/false);
  ladder.Fail(1);
  ladder.Fail(1);
  ladder.Fail(1);
  EXPECT_EQ(ladder.job().phase(), v1::JOB_PHASE_FAILED);
  EXPECT_THAT(ladder.job().reason(), HasSubstr("no other nodes can take what ran on 'a'"));
  EXPECT_THAT(ladder.rungs(), ElementsAre("retry", "retry", "stop"));
}

TEST(Budgets, CountWithinTheWindowAndNotForEver) {
  Ladder ladder(
      [](v1::Recovery& recovery) {
        recovery.set_max_restarts(3);
        recovery.mutable_budgets()->mutable_window()->set_seconds(3600);
      },
      /*has_other=*/false);
  for (int i = 0; i < 10; ++i) {
    ladder.Fail(1);
    ladder.cluster.Run(absl::Minutes(25));
  }
  EXPECT_EQ(ladder.job().restarts(), 10);
  EXPECT_EQ(ladder.job().phase(), v1::JOB_PHASE_STARTING);
  const v1::Job view = JobView(ladder.cluster.state, "job");
  ASSERT_EQ(view.recovery_budgets_size(), 2);
  EXPECT_EQ(view.recovery_budgets(1).key(), "recovery.max_restarts");
  EXPECT_EQ(view.recovery_budgets(1).used(), 2);
  EXPECT_EQ(view.recovery_budgets(1).limit(), 3);
  for (int i = 0; i < 2; ++i) ladder.Fail(1);
  EXPECT_EQ(ladder.job().phase(), v1::JOB_PHASE_FAILED);
  EXPECT_THAT(ladder.job().reason(), HasSubstr("restarted 3 times within 1h"));
}

TEST(Budgets, ACoordinatorThatStartsAnewRemembersThem) {
  Ladder ladder([](v1::Recovery& recovery) { recovery.mutable_budgets()->set_retry(2); },
                /*has_other=*/false);
  ladder.Fail(1);
  ladder.cluster.Restart();
  ladder.cluster.Hello("a", {.devices = 1, .running = {ladder.cluster.ref("job", 0)}});
  ladder.Fail(1);
  ladder.Fail(1);
  EXPECT_EQ(ladder.job().phase(), v1::JOB_PHASE_FAILED);
}

}  // namespace
}  // namespace mega::core
