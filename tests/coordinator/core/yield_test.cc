// Devices taken from healthy attempts: saved first, nothing of it a failure. Pause, cordon, drain.
#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/core/cluster.h"

namespace mega::core {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

v1::ReplyCall Pause(Cluster& cluster, const JobUid& uid) {
  v1::CoreRequest request;
  request.set_uid(uid);
  request.mutable_pause_job();
  return cluster.Ask(std::move(request));
}

v1::ReplyCall Resume(Cluster& cluster, const JobUid& uid) {
  v1::CoreRequest request;
  request.set_uid(uid);
  request.mutable_resume_job();
  return cluster.Ask(std::move(request));
}

v1::ReplyCall Cordon(Cluster& cluster, const NodeId& node) {
  v1::CoreRequest request;
  request.mutable_cordon_node()->set_name(node);
  request.mutable_cordon_node()->set_reason("a fan is loud");
  return cluster.Ask(std::move(request));
}

v1::ReplyCall Uncordon(Cluster& cluster, const NodeId& node) {
  v1::CoreRequest request;
  request.mutable_uncordon_node()->set_name(node);
  return cluster.Ask(std::move(request));
}

v1::ReplyCall Drain(Cluster& cluster, const NodeId& node) {
  v1::CoreRequest request;
  request.mutable_drain_node()->set_name(node);
  return cluster.Ask(std::move(request));
}

TEST(Pause, SavesThenGivesTheDevicesBackAndIsNoFailure) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.StepDone(uid, 7);
  EXPECT_EQ(Pause(cluster, uid).job().uid(), uid);
  EXPECT_EQ(cluster.Count("a", v1::Command::kSaveCheckpoint), 1);
  EXPECT_EQ(cluster.Count("b", v1::Command::kSaveCheckpoint), 1);
  EXPECT_EQ(cluster.Count("a", v1::Command::kStopRanks), 0);
  EXPECT_EQ(Pause(cluster, uid).code(), 0);  // again: nothing new
  EXPECT_EQ(cluster.Count("a", v1::Command::kSaveCheckpoint), 1);

  cluster.Save(uid, 5, 0);  // was under way before the pause
  cluster.Save(uid, 5, 1);
  EXPECT_EQ(cluster.Count("a", v1::Command::kStopRanks), 0);
  cluster.Save(uid, 8, 0);
  cluster.Save(uid, 8, 1);
  EXPECT_EQ(cluster.Count("a", v1::Command::kStopRanks), 1);
  cluster.Exit(uid, 0, 0, 15, true);
  cluster.Exit(uid, 1, 0, 15, true);
  EXPECT_EQ(cluster.job(uid).phase(), v1::JOB_PHASE_PAUSED);
  EXPECT_EQ(cluster.job(uid).restarts(), 0);
  EXPECT_EQ(cluster.job(uid).cycles_without_progress(), 0);
  EXPECT_TRUE(cluster.state.index.device_owner.empty());
  cluster.Run(absl::Minutes(5));
  EXPECT_EQ(cluster.job(uid).phase(), v1::JOB_PHASE_PAUSED);

  EXPECT_EQ(Resume(cluster, uid).code(), 0);
  EXPECT_EQ(cluster.job(uid).phase(), v1::JOB_PHASE_STARTING);
  EXPECT_EQ(cluster.attempt(uid).start_step(), 8);
}

TEST(Pause, OfASaveThatNeverComesEndsAtTheDeadline) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  Pause(cluster, uid);
  cluster.Run(absl::Seconds(59));
  EXPECT_EQ(cluster.Count("a", v1::Command::kStopRanks), 0);
  cluster.Run(absl::Seconds(2));
  EXPECT_EQ(cluster.Count("a", v1::Command::kStopRanks), 1);
  EXPECT_THAT(cluster.events(uid), Contains("SAVE_OVERDUE"));
}

TEST(Pause, DeadlineOutlivesTheCoordinator) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  Pause(cluster, uid);
  cluster.Run(absl::Seconds(40));
  cluster.Restart();
  for (const char* node : {"a", "b"}) {
    cluster.Hello(node, {.devices = 1, .running = {cluster.ref(uid, node[0] - 'a')}});
  }
  cluster.Run(absl::Seconds(19));
  EXPECT_EQ(cluster.Count("a", v1::Command::kStopRanks), 0);
  cluster.Run(absl::Seconds(2));
  EXPECT_EQ(cluster.Count("a", v1::Command::kStopRanks), 1);
}

TEST(Pause, OfAQueuedJobKeepsItsAge) {
  Cluster cluster;
  cluster.Submit("old", 2);
  cluster.Run(absl::Seconds(1));
  cluster.Submit("young", 2);
  Pause(cluster, "old");
  EXPECT_EQ(cluster.job("old").phase(), v1::JOB_PHASE_PAUSED);
  EXPECT_EQ(JobView(cluster.state, "young").queue_position(), 1);
  Resume(cluster, "old");
  EXPECT_EQ(cluster.job("old").phase(), v1::JOB_PHASE_QUEUED);
  EXPECT_EQ(JobView(cluster.state, "old").queue_position(), 1);
}

TEST(Pause, OfAJobThatHasEndedIsRefusedAndCancelEndsAPausedOne) {
  Cluster cluster;
  cluster.Submit("job", 2);
  Pause(cluster, "job");
  cluster.Cancel("job");
  EXPECT_EQ(cluster.job("job").phase(), v1::JOB_PHASE_CANCELLED);
  EXPECT_EQ(Pause(cluster, "job").reason(), "JOB_FINISHED");
  EXPECT_EQ(Resume(cluster, "job").reason(), "JOB_FINISHED");
  EXPECT_EQ(Pause(cluster, "nobody").reason(), "JOB_NOT_FOUND");
}

TEST(Pause, BeforeTheFirstStepStopsAtOnce) {
  Cluster cluster;
  cluster.Hello("a");
  cluster.Submit("job", 2);
  Pause(cluster, "job");
  EXPECT_EQ(cluster.Count("a", v1::Command::kStopRanks), 1);
  EXPECT_EQ(cluster.Count("a", v1::Command::kSaveCheckpoint), 0);
}

TEST(Pause, ResumedBeforeTheRanksHaveEndedGoesOnAfterThem) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  Pause(cluster, uid);
  Resume(cluster, uid);
  cluster.Run(absl::Seconds(61));
  cluster.Exit(uid, 0, 0, 15, true);
  cluster.Exit(uid, 1, 0, 15, true);
  cluster.Run(absl::Seconds(10));
  EXPECT_EQ(cluster.job(uid).phase(), v1::JOB_PHASE_STARTING);
  EXPECT_EQ(cluster.job(uid).restarts(), 0);
}

// Case: the pause was answered and lost, and the job then could be neither paused nor restarted.
TEST(Pause, WhileAFailedAttemptEndsIsKept) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.Exit(uid, 0, 1);
  EXPECT_EQ(Pause(cluster, uid).code(), 0);
  cluster.Exit(uid, 1, 0, 9, true);
  EXPECT_EQ(cluster.job(uid).phase(), v1::JOB_PHASE_PAUSED);
  EXPECT_EQ(cluster.job(uid).restarts(), 1);  // the failure counts all the same
  cluster.Run(absl::Minutes(5));
  EXPECT_EQ(cluster.job(uid).phase(), v1::JOB_PHASE_PAUSED);
  EXPECT_EQ(Resume(cluster, uid).code(), 0);
  cluster.Run(absl::Seconds(10));
  EXPECT_EQ(cluster.job(uid).phase(), v1::JOB_PHASE_STARTING);
}

TEST(Yield, ARankThatFailsWhileItSavesIsStillNoFailureOfTheJob) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  Pause(cluster, uid);
  cluster.Exit(uid, 0, 1);
  cluster.Exit(uid, 1, 0, 9, true);
  EXPECT_EQ(cluster.job(uid).phase(), v1::JOB_PHASE_PAUSED);
  EXPECT_EQ(cluster.job(uid).restarts(), 0);
}

TEST(Cordon, NothingNewIsPlacedThereAndWhatRunsGoesOn) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.Hello("c", {.devices = 1});
  EXPECT_TRUE(Cordon(cluster, "c").node().cordoned());
  cluster.Submit("next", 1);
  cluster.Run(absl::Seconds(5));
  EXPECT_EQ(cluster.job("next").phase(), v1::JOB_PHASE_QUEUED);
  // Its worker's word does not lift it, nor does a new coordinator.
  cluster.Hello("c", {.devices = 1, .incarnation = 2});
  cluster.Restart();
  cluster.Hello("c", {.devices = 1, .incarnation = 3});
  EXPECT_EQ(cluster.job("next").phase(), v1::JOB_PHASE_QUEUED);
  EXPECT_EQ(cluster.job(uid).phase(), v1::JOB_PHASE_RUNNING);
  EXPECT_FALSE(Uncordon(cluster, "c").node().cordoned());
  EXPECT_EQ(cluster.job("next").phase(), v1::JOB_PHASE_STARTING);
  EXPECT_EQ(Cordon(cluster, "nowhere").reason(), "NODE_NOT_FOUND");
}

// Case: a reason of megabytes became durable, and stood in every view of the node.
TEST(Cordon, AReasonThatIsTooLongIsRefusedAndChangesNothing) {
  Cluster cluster;
  cluster.Hello("a");
  const auto ask = [&](size_t bytes) {
    v1::CoreRequest cordon, drain;
    cordon.mutable_cordon_node()->set_name("a");
    cordon.mutable_cordon_node()->set_reason(std::string(bytes, 'r'));
    drain.mutable_drain_node()->set_name("a");
    drain.mutable_drain_node()->set_reason(std::string(bytes, 'r'));
    return std::vector{cluster.Ask(cordon), cluster.Ask(drain)};
  };
  for (const v1::ReplyCall& reply : ask(513)) {
    EXPECT_EQ(reply.code(), static_cast<int>(absl::StatusCode::kInvalidArgument));
    EXPECT_EQ(reply.reason(), "REASON_TOO_LONG");
    EXPECT_THAT(reply.message(), HasSubstr("513 bytes"));
  }
  EXPECT_FALSE(cluster.state.durable.nodes.at("a").cordoned());
  for (const v1::ReplyCall& reply : ask(512)) EXPECT_EQ(reply.code(), 0);
  EXPECT_TRUE(cluster.state.durable.nodes.at("a").draining());
}

TEST(Drain, MovesEveryJobToOtherNodes) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  const v1::ReplyCall reply = Drain(cluster, "b");
  EXPECT_TRUE(reply.node().draining() && reply.node().cordoned());
  EXPECT_EQ(cluster.Count("a", v1::Command::kSaveCheckpoint), 1);
  cluster.Hello("c", {.devices = 1});
  cluster.Save(uid, 2, 0);
  cluster.Save(uid, 2, 1);
  cluster.Exit(uid, 0, 0, 15, true);
  cluster.Exit(uid, 1, 0, 15, true);
  cluster.Run(absl::Seconds(5));
  EXPECT_EQ(cluster.job(uid).phase(), v1::JOB_PHASE_STARTING);
  EXPECT_EQ(cluster.attempt(uid).start_step(), 2);
  for (const v1::RankState& rank : cluster.attempt(uid).ranks()) EXPECT_NE(rank.node(), "b");
  EXPECT_FALSE(cluster.state.index.device_owner.contains("b"));
  EXPECT_EQ(cluster.job(uid).restarts(), 0);
}

}  // namespace
}  // namespace mega::core
