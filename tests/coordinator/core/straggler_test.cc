// Ranks slower than their group, and what is held against nodes.
#include "coordinator/core/health/straggler.h"

#include "coordinator/core/health/findings.h"
#include "coordinator/core/jobs/attempt.h"
#include "coordinator/core/jobs/yield.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/core/cluster.h"

namespace mega::core {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct Pair {
  Cluster cluster;
  int64_t step = 1;
  explicit Pair(const std::string& action = "", int64_t rounds = 5) {
    cluster.Hello("a", {.devices = 1});
    cluster.Hello("b", {.devices = 1});
    cluster.Submit("job", 2, [&](v1::CoreSubmit& submit) {
      v1::StragglerRule& rule =
          *submit.mutable_resolved_spec()->mutable_health()->mutable_straggler();
      rule.set_rounds(rounds);
      if (!action.empty()) rule.set_action(action);
    });
    cluster.AckAll("a");
    cluster.AckAll("b");
    cluster.Ready("job");
    cluster.StepDone("job", 1);
  }
  void Report(int64_t rank, double backward) {
    v1::CoreEvent event;
    v1::StepReport& report = *event.mutable_step_report();
    report.set_job_uid("job");
    report.set_attempt(cluster.attempt("job").number());
    report.set_epoch(cluster.attempt("job").epoch());
    report.set_rank(rank);
    report.set_step(step);
    report.set_step_seconds(3);  // whoever waits takes as long
    report.mutable_seconds()->set_forward(0.5);
    report.mutable_seconds()->set_backward(backward);
    report.mutable_seconds()->set_reduce_exposed(9);
    cluster.Feed(event);
  }
  void Round(double a, double b) {
    ++step;
    Report(0, a);
    Report(1, b);
    cluster.Run(absl::Seconds(1));
  }
  int64_t verdicts() const {
    const auto events = cluster.events("job");
    return std::ranges::count(events, "STRAGGLER");
  }
};

TEST(Straggler, IsNamedAfterRoundsInARowWithItsNodeAndOnce) {
  Pair pair;
  for (int i = 0; i < 4; ++i) pair.Round(1, 2);
  EXPECT_EQ(pair.verdicts(), 0);
  for (int i = 0; i < 20; ++i) pair.Round(1, 2);
  EXPECT_EQ(pair.verdicts(), 1);
  const auto& findings = pair.cluster.state.durable.nodes.at("b").findings();
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].check(), "straggler");
  EXPECT_THAT(findings[0].message(), HasSubstr("rank 1 on node 'b'"));
  EXPECT_THAT(pair.cluster.state.durable.nodes.at("a").findings(), IsEmpty());
  // A warning only: the node may have more ranks, and the job goes on.
  EXPECT_TRUE(IsSchedulable(pair.cluster.state, "b"));
  EXPECT_EQ(pair.cluster.job("job").attempts_size(), 1);
}

TEST(Straggler, OneGoodRoundBreaksTheRow) {
  Pair pair;
  for (int i = 0; i < 10; ++i) {
    for (int slow = 0; slow < 4; ++slow) pair.Round(1, 2);
    pair.Round(1, 1.2);
  }
  EXPECT_EQ(pair.verdicts(), 0);
}

TEST(Straggler, DifferencesOfASchedulerAreNone) {
  Pair pair;
  for (int i = 0; i < 20; ++i) {
    ++pair.step;
    for (const int64_t rank : {0, 1}) {
      v1::CoreEvent event;
      v1::StepReport& report = *event.mutable_step_report();
      report.set_job_uid("job");
      report.set_attempt(1);
      report.set_epoch(pair.cluster.attempt("job").epoch());
      report.set_rank(rank);
      report.set_step(pair.step);
      report.mutable_seconds()->set_forward(rank == 0 ? 0.001 : 0.009);
      pair.cluster.Feed(event);
    }
    pair.cluster.Run(absl::Seconds(1));
  }
  EXPECT_EQ(pair.verdicts(), 0);
}

TEST(Straggler, RoundsAreAtMostOneASecond) {
  Pair pair;
  for (int i = 0; i < 50; ++i) {
    ++pair.step;
    pair.Report(0, 1);
    pair.Report(1, 2);
  }
  EXPECT_EQ(pair.verdicts(), 0);
}

TEST(Straggler, ReportsThatAreNoMeasurementDoNoHarm) {
  Pair pair;
  for (const double bad : {-1.0, 1e300, std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()}) {
    for (int i = 0; i < 10; ++i) pair.Round(bad, bad);
  }
  ++pair.step;
  pair.Report(-1, 1);
  pair.Report(2, 1);
  EXPECT_EQ(pair.verdicts(), 0);
}

TEST(Straggler, NoneAsksForNothing) {
  Pair pair("none");
  for (int i = 0; i < 20; ++i) pair.Round(1, 2);
  EXPECT_EQ(pair.verdicts(), 0);
}

TEST(Straggler, ReplaceSavesAndTakesAnotherNode) {
  Pair pair("replace");
  pair.cluster.Hello("c", {.devices = 1});
  for (int i = 0; i < 5; ++i) pair.Round(1, 2);
  EXPECT_EQ(pair.verdicts(), 1);
  EXPECT_TRUE(IsSaving(pair.cluster.attempt("job")));
  EXPECT_EQ(pair.cluster.Count("a", v1::Command::kSaveCheckpoint), 1);
  pair.cluster.Run(absl::Seconds(61));  // it has not saved
  pair.cluster.Exit("job", 0, 0, 15, true);
  pair.cluster.Exit("job", 1, 0, 15, true);
  EXPECT_EQ(NodesOf(pair.cluster.attempt("job")), (std::set<NodeId>{"a", "c"}));
  EXPECT_EQ(pair.cluster.job("job").recoveries(0).rung(), "spare");
  EXPECT_EQ(pair.cluster.job("job").recoveries(0).decided_by(), "health.straggler.action");
}

TEST(Straggler, WithoutAnotherNodeItStays) {
  Pair pair("replace");
  for (int i = 0; i < 20; ++i) pair.Round(1, 2);
  EXPECT_EQ(pair.verdicts(), 1);
  EXPECT_FALSE(pair.cluster.attempt("job").yields());
  EXPECT_THAT(pair.cluster.state.durable.nodes.at("b").findings(0).message(),
              HasSubstr("no other node has room"));
}

// ---- findings

v1::WorkerMessage Findings(const std::vector<std::pair<std::string, v1::Severity>>& findings) {
  v1::WorkerMessage message;
  message.mutable_node_findings();
  for (const auto& [check, severity] : findings) {
    v1::Finding& finding = *message.mutable_node_findings()->add_findings();
    finding.set_check(check);
    finding.set_severity(severity);
    finding.set_message("what was seen");
  }
  return message;
}

TEST(Findings, AnErrorKeepsNewRanksAwayUntilItIsGone) {
  Cluster cluster;
  cluster.Hello("a", {.devices = 1});
  cluster.Say("a", Findings({{"disk", v1::SEVERITY_ERROR}}));
  cluster.Submit("job", 1);
  cluster.Run(absl::Seconds(2));
  EXPECT_EQ(cluster.job("job").attempts_size(), 0);
  EXPECT_EQ(NodeView(cluster.state, "a").findings(0).check(), "disk");
  cluster.Say("a", Findings({{"disk", v1::SEVERITY_WARNING}}));
  cluster.Run(absl::Seconds(2));
  EXPECT_EQ(cluster.job("job").attempts_size(), 1);
  cluster.Say("a", Findings({}));
  EXPECT_THAT(NodeView(cluster.state, "a").findings(), IsEmpty());
}

TEST(Findings, WhatRunsThereGoesOn) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.Say("a", Findings({{"memory", v1::SEVERITY_ERROR}}));
  cluster.Run(absl::Seconds(5));
  EXPECT_EQ(cluster.attempt(uid).state(), v1::ATTEMPT_STATE_RUNNING);
}

TEST(Findings, TheSameAgainChangesNothingDurable) {
  Cluster cluster;
  cluster.Hello("a", {.devices = 1});
  cluster.Say("a", Findings({{"disk", v1::SEVERITY_WARNING}}));
  const int64_t revision = cluster.state.durable.meta.revision();
  cluster.Run(absl::Seconds(1));
  cluster.Say("a", Findings({{"disk", v1::SEVERITY_WARNING}}));
  EXPECT_EQ(cluster.state.durable.meta.revision(), revision);
}

TEST(Findings, AreBoundedAndCannotSpeakForTheCoordinator) {
  Cluster cluster;
  cluster.Hello("a", {.devices = 1});
  std::vector<std::pair<std::string, v1::Severity>> many = {{"straggler", v1::SEVERITY_ERROR},
                                                            {"", v1::SEVERITY_ERROR}};
  for (int i = 0; i < 1000; ++i) many.emplace_back(std::string(900, 'a') + "x", v1::SEVERITY_INFO);
  for (int i = 0; i < 1000; ++i) many.emplace_back(std::to_string(i), v1::SEVERITY_INFO);
  cluster.Say("a", Findings(many));
  const v1::Node& node = cluster.state.durable.nodes.at("a");
  EXPECT_EQ(node.findings_size(), 32);
  EXPECT_FALSE(HasError(node));
  EXPECT_LE(node.findings(31).check().size(), 32);
}

}  // namespace
}  // namespace mega::core
