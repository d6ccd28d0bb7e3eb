// Parts of checkpoints that are not complete: who may speak of them, how many are kept, and for how
// long.
#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/core/cluster.h"

namespace mega::core {
namespace {

using testing::Contains;
using testing::Not;

v1::WorkerMessage Failed(const v1::RankRef& rank, int64_t step) {
  v1::WorkerMessage message;
  *message.mutable_checkpoint_failed()->mutable_rank() = rank;
  message.mutable_checkpoint_failed()->set_step(step);
  message.mutable_checkpoint_failed()->set_message("No space left on device");
  return message;
}

// The node is lost, and then forgotten.
void Forget(Cluster& cluster, const NodeId& node) {
  cluster.silent.insert(node);
  cluster.Run(absl::Seconds(20));
  cluster.Pause(absl::Hours(24));
  cluster.Run(absl::Seconds(61));
  ASSERT_FALSE(cluster.state.durable.nodes.contains(node));
}

// Case: the attempt ended right after its commits, with the manifests of older ones unwritten; and
// no rank of the next one could tell what lies below its checkpoint from what the job keeps.
TEST(Parts, AnAttemptIsToldAllThatTheJobKeepsBeforeItIsConnected) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  for (const int64_t step : {10, 20}) {
    for (const int64_t rank : {0, 1}) cluster.Save(uid, step, rank);
  }
  cluster.Exit(uid, 0, 0, 9);
  cluster.Exit(uid, 1, 1);
  cluster.Run(absl::Seconds(5));
  ASSERT_EQ(cluster.attempt(uid).start_step(), 20);
  cluster.sent.clear();
  cluster.Ready(uid);
  const NodeId writer = cluster.attempt(uid).ranks(0).node();
  for (const auto& [node, sent] : cluster.sent) {
    ASSERT_EQ(sent.size(), 3u) << node;
    for (const int i : {0, 1}) {
      const v1::CheckpointCommitted& told = sent[i].checkpoint_committed();
      EXPECT_EQ(told.attempt(), 2);
      EXPECT_EQ(told.epoch(), cluster.attempt(uid).epoch());
      EXPECT_EQ(told.manifest().step(), i == 0 ? 10 : 20);
      EXPECT_EQ(told.manifest().attempt(), 1);
      EXPECT_EQ(told.manifest().epoch(), cluster.job(uid).attempts(0).epoch());
      EXPECT_EQ(told.manifest().slices_size(), node == writer ? 2 : 0);
    }
    EXPECT_TRUE(sent[2].has_connect_ranks());
  }
  EXPECT_EQ(cluster.sent.size(), 2u);
}

// Case: one message ended the coordinator, on its thread, for a node that it had forgotten.
TEST(Parts, AFailureThatIsToldAfterTheAttemptHasEndedChangesNothing) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.silent = {"b"};
  cluster.Run(absl::Seconds(20));
  cluster.Exit(uid, 0, 1);
  ASSERT_EQ(cluster.attempt(uid).state(), v1::ATTEMPT_STATE_ENDED);
  Forget(cluster, "b");
  cluster.Say("a", Failed(cluster.ref(uid, 0), 100));
  EXPECT_EQ(cluster.Count("a", v1::Command::kCheckpointRejected), 0);
  EXPECT_TRUE(cluster.state.live.parts.empty());
  EXPECT_THAT(cluster.events(uid), Not(Contains("CHECKPOINT_FAILED")));
}

TEST(Parts, TheLastOnesOfAJobThatSucceededMayComeWhenANodeOfItIsForgotten) {
  Cluster cluster;
  cluster.Hello("a", {.devices = 1});
  cluster.Hello("b", {.devices = 1});
  const JobUid uid = "job";
  cluster.Submit(uid, 2, [](v1::CoreSubmit& submit) {
    submit.mutable_resolved_spec()->mutable_checkpoint()->set_keep(1);
  });
  for (const int64_t rank : {0, 1}) cluster.Save(uid, 10, rank);
  cluster.Save(uid, 20, 0);
  for (const int64_t rank : {0, 1}) cluster.Exit(uid, rank, 0);
  Forget(cluster, "a");
  cluster.Save(uid, 20, 1);
  ASSERT_EQ(cluster.job(uid).checkpoints_size(), 1);
  EXPECT_EQ(cluster.job(uid).checkpoints(0).step(), 20);
  EXPECT_EQ(cluster.Count("b", v1::Command::kCheckpointCommitted), 2);
  ASSERT_EQ(cluster.Count("b", v1::Command::kDeleteCheckpoint), 1) << "the node of rank 0 is gone";
  EXPECT_EQ(cluster.sent["b"].back().delete_checkpoint().step(), 10);
}

TEST(Parts, OnlyItsOwnNodeSaysThatARankCouldNotSave) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.Hello("c");
  cluster.Save(uid, 20, 0);
  v1::RankRef beyond = cluster.ref(uid, 2);
  for (const char* node : {"b", "c"}) {
    cluster.Say(node, Failed(cluster.ref(uid, 0), 20));
    cluster.Say(node, Failed(beyond, 20));
    beyond.set_rank(-1);
  }
  EXPECT_THAT(cluster.events(uid), Not(Contains("CHECKPOINT_FAILED")));
  cluster.Save(uid, 20, 1);
  EXPECT_EQ(cluster.job(uid).checkpoints_size(), 1);
}

// Case: what was known of failed steps filled the bound, and every real part was dropped for it.
TEST(Parts, FailedStepsHoweverHighDoNotStandInTheWayOfTheOthers) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  for (int64_t i = 0; i < 8; ++i) {
    cluster.Say("b", Failed(cluster.ref(uid, 1), (int64_t{1} << 52) - i));
  }
  for (const int64_t rank : {0, 1}) cluster.Save(uid, 20, rank);
  EXPECT_EQ(cluster.job(uid).checkpoints_size(), 1);
  EXPECT_EQ(cluster.state.live.parts.size(), 4u) << "what is remembered of the failed ones";
}

// Case: a failure took the place of the oldest step that was saved, or was not told at all.
TEST(Parts, AFailedStepCostsNoOtherAndIsTold) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  for (const int64_t step : {10, 20, 30, 40}) cluster.Save(uid, step, 0);
  for (const int64_t step : {5, 50}) {
    cluster.Say("b", Failed(cluster.ref(uid, 1), step));
    EXPECT_EQ(cluster.sent["a"].back().checkpoint_rejected().step(), step);
  }
  EXPECT_THAT(cluster.events(uid), Not(Contains("CHECKPOINT_ABANDONED")));
  cluster.Save(uid, 10, 1);
  EXPECT_EQ(cluster.job(uid).checkpoints_size(), 1);
}

// Case: the coordinator started anew before its order had reached anybody, and committed the parts
// that it was told again, while the ranks took them back.
TEST(Parts, WhatIsToBeTakenBackIsNotCommittedByTheNextProcess) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  const int64_t heard = cluster.sent["a"].back().seq();
  cluster.Say("b", Failed(cluster.ref(uid, 1), 20));
  cluster.Restart();
  for (const int64_t rank : {0, 1}) {
    cluster.Hello(rank == 0 ? "a" : "b",
                  {.devices = 1, .running = {cluster.ref(uid, rank)}, .last_command_seq = heard});
  }
  for (const int64_t rank : {0, 1}) cluster.Save(uid, 20, rank);
  EXPECT_TRUE(cluster.job(uid).checkpoints().empty());
  for (const int64_t rank : {0, 1}) cluster.Save(uid, 30, rank);
  EXPECT_EQ(cluster.job(uid).checkpoints_size(), 1);
}

TEST(Parts, AStepOlderThanAllUnderWayIsGivenUpOnce) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  for (const int64_t step : {10, 20, 30, 40}) cluster.Save(uid, step, 0);
  for (const int64_t rank : {1, 0, 1}) cluster.Save(uid, 5, rank);
  EXPECT_EQ(std::ranges::count(cluster.events(uid), "CHECKPOINT_ABANDONED"), 1);
  EXPECT_EQ(cluster.Count("b", v1::Command::kCheckpointRejected), 1);
  EXPECT_TRUE(cluster.job(uid).checkpoints().empty());
}

TEST(Parts, AStepBeyondThePlanIsNoneOfTheAttempt) {
  Cluster cluster;
  cluster.plans_itself = true;
  cluster.Hello("a");
  cluster.Submit("job", 1);
  v1::CoreEvent event;
  v1::CorePlanMade& made = *event.mutable_plan_made();
  made.set_job_uid("job");
  made.set_revision(cluster.asked.at(0).revision());
  made.mutable_plan()->set_world_size(1);
  made.mutable_plan()->set_steps(100);
  made.mutable_plan()->add_ranks()->set_node("a");
  cluster.Feed(event);
  ASSERT_EQ(cluster.job("job").phase(), v1::JOB_PHASE_STARTING);
  cluster.Save("job", 101, 0);
  EXPECT_TRUE(cluster.job("job").checkpoints().empty());
  cluster.Save("job", 100, 0);
  EXPECT_EQ(cluster.job("job").checkpoints_size(), 1);
}

TEST(Parts, AStepThatLaterOnesPushOutIsGivenUpAndSaidOnce) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  for (const int64_t step : {10, 20, 30, 40}) cluster.Save(uid, step, 0);
  EXPECT_THAT(cluster.events(uid), Not(Contains("CHECKPOINT_ABANDONED")));
  cluster.Save(uid, 50, 0);
  EXPECT_EQ(cluster.events(uid).back(), "CHECKPOINT_ABANDONED");
  ASSERT_EQ(cluster.Count("b", v1::Command::kCheckpointRejected), 1);
  EXPECT_EQ(cluster.sent["b"].back().checkpoint_rejected().step(), 10);
  cluster.Save(uid, 10, 1);  // late, and the only one
  EXPECT_EQ(std::ranges::count(cluster.events(uid), "CHECKPOINT_ABANDONED"), 1);
  for (const int64_t step : {20, 50}) cluster.Save(uid, step, 1);
  EXPECT_EQ(cluster.job(uid).checkpoints_size(), 2);
}

// Case: they were kept to the end of the process, in every snapshot of the journal.
TEST(Parts, AreForgottenWhenTheirJobIsCancelledOrFails) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.Save(uid, 20, 0);
  cluster.Cancel(uid);
  for (const int64_t rank : {0, 1}) cluster.Exit(uid, rank, 0, 15, /*by_worker=*/true);
  ASSERT_EQ(cluster.job(uid).phase(), v1::JOB_PHASE_CANCELLED);
  EXPECT_TRUE(cluster.state.live.parts.empty());

  cluster.Submit("fails", 2);
  cluster.Save("fails", 20, 0);
  ASSERT_EQ(cluster.state.live.parts.size(), 1u);
  for (const int64_t rank : {0, 1}) cluster.Exit("fails", rank, 93);
  ASSERT_EQ(cluster.job("fails").phase(), v1::JOB_PHASE_FAILED);
  EXPECT_TRUE(cluster.state.live.parts.empty());
  cluster.Save("fails", 20, 1);  // late
  EXPECT_TRUE(cluster.state.live.parts.empty());
}

}  // namespace
}  // namespace mega::core
