// Fewer nodes after a loss, more when there is room again, another number when a user says so; and
// a restart that a user asks for.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/core/cluster.h"

namespace mega::core {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

// Two ranks, one on each of two nodes; 1 to 3 nodes are allowed.
struct Elastic {
  Cluster cluster;
  explicit Elastic(const std::function<void(v1::JobSpec&)>& edit = [](v1::JobSpec&) {}) {
    cluster.Hello("a", {.devices = 1});
    cluster.Hello("b", {.devices = 1});
    cluster.Submit("job", 2, [&](v1::CoreSubmit& submit) {
      v1::JobSpec& spec = *submit.mutable_resolved_spec();
      spec.mutable_resources()->mutable_nodes()->set_min(1);
      spec.mutable_resources()->mutable_nodes()->set_desired(2);
      spec.mutable_resources()->mutable_nodes()->set_max(3);
      spec.mutable_resources()->set_devices_per_node(1);
      spec.mutable_elastic()->set_on_loss("shrink");
      spec.mutable_elastic()->set_on_gain("next_checkpoint");
      spec.mutable_elastic()->mutable_shrink_after()->set_seconds(30);
      spec.mutable_elastic()->mutable_cooldown()->set_seconds(0);
      spec.mutable_checkpoint()->set_interval_steps(10);
      edit(spec);
    });
    Run(1);
  }
  void Run(int64_t step) {
    cluster.Ready("job");
    cluster.StepDone("job", step);
  }
  void Save(int64_t step) {
    cluster.StepDone("job", step);
    const int64_t ranks = cluster.attempt("job").ranks_size();
    for (int64_t rank = 0; rank < ranks; ++rank) cluster.Save("job", step, rank);
  }
  // The live attempt's ranks end as told.
  void EndAll() {
    const int64_t ranks = cluster.attempt("job").ranks_size();
    for (int64_t rank = 0; rank < ranks; ++rank) {
      if (cluster.attempt("job").state() == v1::ATTEMPT_STATE_STOPPING) {
        cluster.Exit("job", rank, 0, 15, /*by_worker=*/true);
      }
    }
  }
  // Node b is cut off for good; rank 0 falls over it.
  void LoseB() {
    cluster.silent = {"b"};
    cluster.Run(absl::Seconds(12));
    cluster.Exit("job", 0, 0, 15, /*by_worker=*/true);
    cluster.Run(absl::Seconds(5));
  }
  v1::ReplyCall Scale(int64_t nodes, bool now) {
    v1::CoreRequest request;
    request.set_uid("job");
    request.mutable_scale_job()->set_nodes(nodes);
    request.mutable_scale_job()->set_now(now);
    return cluster.Ask(std::move(request));
  }
  v1::ReplyCall Restart(int64_t from_step = 0) {
    v1::CoreRequest request;
    request.set_uid("job");
    request.mutable_restart_job()->set_from_step(from_step);
    return cluster.Ask(std::move(request));
  }
  const v1::Job& job() const { return cluster.job("job"); }
  std::set<NodeId> nodes() const {
    std::set<NodeId> nodes;
    for (const v1::RankState& rank : cluster.attempt("job").ranks()) nodes.insert(rank.node());
    return nodes;
  }
};

TEST(Shrink, AfterALossThatNothingMakesGoodFewerNodesGoOn) {
  Elastic elastic;
  elastic.Save(10);
  elastic.LoseB();
  EXPECT_EQ(elastic.job().phase(), v1::JOB_PHASE_RECOVERING) << "it waits for b at first";
  elastic.cluster.Run(absl::Seconds(31));
  ASSERT_EQ(elastic.cluster.attempt("job").number(), 2);
  EXPECT_THAT(elastic.nodes(), ElementsAre("a"));
  EXPECT_EQ(elastic.cluster.attempt("job").start_step(), 10);
  EXPECT_EQ(elastic.cluster.attempt("job").nodes_asked(), 1);
  EXPECT_EQ(elastic.cluster.attempt("job").rung(), "shrink");
  EXPECT_EQ(elastic.job().recoveries(0).rung(), "shrink");
  EXPECT_EQ(elastic.job().resolved_spec().resources().nodes().desired(), 2) << "still wanted";
  EXPECT_THAT(elastic.cluster.events("job"), Contains("SHRUNK"));
}

TEST(Shrink, WaitsForANodeThatComesBackInTime) {
  Elastic elastic;
  elastic.LoseB();
  elastic.cluster.silent = {};
  elastic.cluster.Hello("b", {.devices = 1, .incarnation = 2});
  elastic.cluster.Run(absl::Seconds(2));
  EXPECT_EQ(elastic.cluster.attempt("job").number(), 2);
  EXPECT_THAT(elastic.nodes(), ElementsAre("a", "b"));
}

TEST(Shrink, NeverWhereTheJobWaits) {
  Elastic elastic([](v1::JobSpec& spec) { spec.mutable_elastic()->set_on_loss("wait"); });
  elastic.LoseB();
  elastic.cluster.Run(absl::Hours(1));
  EXPECT_EQ(elastic.job().phase(), v1::JOB_PHASE_RECOVERING);
}

TEST(Shrink, TheRungIsTakenAtOnceForANodeThatFailsAgain) {
  Elastic elastic([](v1::JobSpec& spec) {
    spec.mutable_elastic()->clear_on_loss();
    for (const char* rung : {"retry", "shrink", "stop"}) spec.mutable_recovery()->add_ladder(rung);
  });
  for (int64_t step = 2; step <= 3; ++step) {
    elastic.cluster.Exit("job", 1, 1);
    elastic.EndAll();
    elastic.cluster.Run(absl::Seconds(1));
    elastic.Run(step);
  }
  EXPECT_EQ(elastic.cluster.attempt("job").number(), 3);
  EXPECT_THAT(elastic.nodes(), ElementsAre("a"));
  EXPECT_THAT(elastic.job().recoveries(1).nodes_out(), ElementsAre("b"));
  // Alone it has nobody to do without.
  elastic.cluster.Exit("job", 0, 1);
  elastic.cluster.Run(absl::Seconds(1));
  EXPECT_EQ(elastic.cluster.attempt("job").number(), 4);
}

// Case: the record of going back hid the decision, and the node that had failed was taken again.
TEST(Shrink, IsNotForgottenWhenAUserGoesBackMeanwhile) {
  Elastic elastic([](v1::JobSpec& spec) {
    spec.mutable_elastic()->clear_on_loss();
    for (const char* rung : {"retry", "shrink", "stop"}) spec.mutable_recovery()->add_ladder(rung);
  });
  elastic.Save(10);
  for (const int64_t rank : {0, 1, 1}) {
    elastic.cluster.Exit("job", rank, 1);
    elastic.EndAll();
  }
  ASSERT_EQ(elastic.job().phase(), v1::JOB_PHASE_RECOVERING) << "its back-off";
  ASSERT_EQ(elastic.job().recoveries().rbegin()->rung(), "shrink");
  EXPECT_EQ(elastic.Restart(10).code(), 0);
  ASSERT_EQ(elastic.cluster.attempt("job").number(), 4);
  EXPECT_THAT(elastic.nodes(), ElementsAre("a"));
  EXPECT_THAT(elastic.cluster.events("job"), Contains("SHRUNK"));
  ASSERT_EQ(elastic.job().recoveries_size(), 4);
  EXPECT_EQ(elastic.job().recoveries(2).rung(), "shrink");
  const v1::RecoveryRecord& went_back = elastic.job().recoveries(3);
  EXPECT_EQ(went_back.rung(), "roll_back");
  EXPECT_EQ(went_back.decided_by(), "a user; from 2 to 1 nodes");
}

TEST(Shrink, KeepsItsBudget) {
  Elastic elastic(
      [](v1::JobSpec& spec) { spec.mutable_recovery()->mutable_budgets()->set_shrink(0); });
  elastic.LoseB();
  elastic.cluster.Run(absl::Minutes(10));
  EXPECT_EQ(elastic.job().phase(), v1::JOB_PHASE_RECOVERING);
}

TEST(Grow, AtTheNextCheckpointOnceThereIsRoom) {
  Elastic elastic;
  elastic.LoseB();
  elastic.cluster.Run(absl::Seconds(31));
  elastic.Run(2);
  elastic.Save(10);
  EXPECT_EQ(elastic.cluster.attempt("job").state(), v1::ATTEMPT_STATE_RUNNING) << "no room yet";
  elastic.cluster.silent = {};
  elastic.cluster.Hello("b", {.devices = 1, .incarnation = 2});
  elastic.cluster.StepDone("job", 15);
  EXPECT_EQ(elastic.cluster.attempt("job").state(), v1::ATTEMPT_STATE_RUNNING);
  elastic.Save(20);
  elastic.EndAll();
  ASSERT_EQ(elastic.cluster.attempt("job").number(), 3);
  EXPECT_THAT(elastic.nodes(), ElementsAre("a", "b"));
  EXPECT_EQ(elastic.cluster.attempt("job").start_step(), 20);
  EXPECT_EQ(elastic.cluster.attempt("job").rung(), "grow");
  EXPECT_EQ(elastic.job().recoveries(1).lost_steps(), 0);
  EXPECT_EQ(elastic.job().restarts(), 1) << "growing is no restart";
}

TEST(Grow, OthersInTheQueueComeFirst) {
  Elastic elastic;
  elastic.LoseB();
  elastic.cluster.Run(absl::Seconds(31));
  elastic.Run(2);
  elastic.cluster.Submit("other", 3);
  elastic.cluster.silent = {};
  elastic.cluster.Hello("b", {.devices = 1, .incarnation = 2});
  elastic.Save(10);
  EXPECT_EQ(elastic.cluster.attempt("job").state(), v1::ATTEMPT_STATE_RUNNING);
}

TEST(Scale, AtTheNextCheckpointOrNow) {
  Elastic elastic;
  EXPECT_EQ(elastic.Scale(1, /*now=*/false).code(), 0);
  EXPECT_EQ(elastic.cluster.attempt("job").state(), v1::ATTEMPT_STATE_RUNNING);
  elastic.Save(10);
  elastic.EndAll();
  EXPECT_THAT(elastic.nodes(), ElementsAre("a"));
  EXPECT_EQ(elastic.cluster.attempt("job").start_step(), 10);
  EXPECT_EQ(elastic.job().recoveries(0).rung(), "scale");

  elastic.Run(11);
  elastic.cluster.Hello("c", {.devices = 1});
  EXPECT_EQ(elastic.Scale(3, /*now=*/true).code(), 0);
  EXPECT_EQ(elastic.cluster.Count("a", v1::Command::kSaveCheckpoint), 1);
  elastic.Save(12);
  elastic.EndAll();
  EXPECT_THAT(elastic.nodes(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(elastic.cluster.attempt("job").start_step(), 12);
  EXPECT_EQ(elastic.job().restarts(), 0);
}

TEST(Scale, WhatTheJobFileDoesNotAllowIsRefused) {
  Elastic elastic([](v1::JobSpec& spec) { spec.mutable_checkpoint()->set_interval_steps(0); });
  EXPECT_THAT(elastic.Scale(4, false).message(), HasSubstr("may run on 1 to 3 nodes, not 4"));
  EXPECT_THAT(elastic.Scale(0, false).message(), HasSubstr("1 to 3 nodes, not 0"));
  EXPECT_THAT(elastic.Scale(INT64_MIN, true).message(), HasSubstr("1 to 3 nodes"));
  EXPECT_THAT(elastic.Scale(3, false).message(), HasSubstr("checkpoint.interval_steps is 0"));
}

TEST(Scale, AJobThatWaitsIsPlannedForTheNewNumber) {
  Elastic elastic([](v1::JobSpec& spec) { spec.mutable_elastic()->set_on_loss("wait"); });
  elastic.LoseB();
  EXPECT_EQ(elastic.Scale(1, /*now=*/false).code(), 0);
  elastic.cluster.Run(absl::Seconds(1));
  EXPECT_THAT(elastic.nodes(), ElementsAre("a"));
  EXPECT_EQ(elastic.cluster.attempt("job").number(), 2);
}

TEST(Restart, EndsTheAttemptAndIsNoFailure) {
  Elastic elastic;
  elastic.Save(10);
  elastic.cluster.StepDone("job", 14);
  EXPECT_EQ(elastic.Restart().code(), 0);
  EXPECT_EQ(elastic.cluster.Count("a", v1::Command::kStopRanks), 1);
  elastic.EndAll();
  ASSERT_EQ(elastic.cluster.attempt("job").number(), 2);
  EXPECT_EQ(elastic.cluster.attempt("job").start_step(), 10);
  EXPECT_EQ(elastic.job().restarts(), 0);
  EXPECT_EQ(elastic.job().cycles_without_progress(), 0);
  EXPECT_THAT(elastic.cluster.events("job"), Contains("RESTART_REQUESTED"));
  EXPECT_THAT(elastic.Restart(3).message(), HasSubstr("it has that of step 10"));
}

TEST(Restart, EndsABackOff) {
  Elastic elastic;
  for (int i = 0; i < 3; ++i) {
    elastic.cluster.Exit("job", 0, 1);
    elastic.EndAll();
  }
  EXPECT_EQ(elastic.cluster.attempt("job").number(), 3) << "it waits";
  EXPECT_EQ(elastic.Restart().code(), 0);
  EXPECT_EQ(elastic.cluster.attempt("job").number(), 4);
}

}  // namespace
}  // namespace mega::core
