// The life of a job: submitted once, run, ended once.
#include "absl/status/status.h"
#include "coordinator/core/waiting.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/core/cluster.h"

namespace mega::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Submit, TheSameRequestGivesTheSameJobAlsoAfterARestart) {
  Cluster cluster;
  const auto other_uid = [](v1::CoreSubmit& submit) { submit.set_uid("another"); };
  const int64_t first = cluster.Submit("job", 2);
  const int64_t second = cluster.Submit("job", 2, other_uid);
  cluster.Restart();
  const int64_t third = cluster.Submit("job", 2, other_uid);

  for (const int64_t call : {first, second, third}) {
    EXPECT_EQ(cluster.replies.at(call).job().uid(), "job");
  }
  EXPECT_EQ(cluster.state.durable.jobs.size(), 1u);
}

TEST(Submit, ADifferentSpecificationUnderTheSameRequestIsRefused) {
  Cluster cluster;
  cluster.Submit("job", 2);
  const int64_t call = cluster.Submit("job", 3);
  EXPECT_EQ(cluster.replies.at(call).code(), static_cast<int>(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(cluster.replies.at(call).message(), HasSubstr("request-job"));
}

TEST(Submit, ANameIsTakenOnlyWhileItsJobIsUnfinished) {
  Cluster cluster;
  const auto again = [](v1::CoreSubmit& submit) {
    submit.set_uid("second");
    submit.set_request_id("request-second");
  };
  cluster.Submit("job", 2);
  EXPECT_EQ(cluster.replies.at(cluster.Submit("job", 2, again)).reason(), "NAME_TAKEN");
  cluster.Cancel("job");
  EXPECT_EQ(cluster.replies.at(cluster.Submit("job", 2, again)).job().uid(), "second");
}

TEST(Job, GoesFromSubmitToSuccess) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  EXPECT_EQ(cluster.job(uid).phase(), v1::JOB_PHASE_RUNNING);
  cluster.StepDone(uid, 2);
  EXPECT_EQ(JobView(cluster.state, uid).last_step(), 2);
  cluster.Exit(uid, 1, 0);
  cluster.Run(absl::Minutes(20));  // rank 0 ends much later
  EXPECT_EQ(cluster.job(uid).phase(), v1::JOB_PHASE_RUNNING);
  cluster.Exit(uid, 0, 0);

  EXPECT_EQ(cluster.job(uid).phase(), v1::JOB_PHASE_SUCCEEDED);
  EXPECT_EQ(cluster.job(uid).last_step(), 2);
  EXPECT_TRUE(cluster.state.index.device_owner.empty());
  EXPECT_THAT(cluster.events(uid),
              ElementsAre("SUBMITTED", "PLANNED", "STARTING", "RUNNING", "SUCCEEDED"));
}

TEST(Job, RanksAreConnectedOnceAllAreReadyAndOnlyOnce) {
  Cluster cluster;
  cluster.Hello("a");
  cluster.Submit("job", 2);
  EXPECT_EQ(cluster.Count("a", v1::Command::kConnectRanks), 0);
  cluster.Ready("job");
  cluster.Ready("job");  // said again after a reconnect
  ASSERT_EQ(cluster.Count("a", v1::Command::kConnectRanks), 1);
  const v1::ConnectRanks& connect = cluster.sent["a"].back().connect_ranks();
  ASSERT_EQ(connect.addresses_size(), 2);
  EXPECT_EQ(connect.addresses(1).address(), "address of 1");
}

TEST(Job, TheLastReportMayComeAfterTheEnd) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.Exit(uid, 0, 0);
  cluster.Exit(uid, 1, 0);
  cluster.StepDone(uid, 9);
  EXPECT_EQ(cluster.job(uid).last_step(), 9);
  EXPECT_EQ(cluster.job(uid).phase(), v1::JOB_PHASE_SUCCEEDED);
}

// Case: each report of each rank of an ended job wrote the whole of it to the disk.
TEST(Job, AReportAfterTheEndIsWrittenOnlyWhenItIsNews) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  for (const int64_t rank : {0, 1}) cluster.Exit(uid, rank, 0);
  cluster.StepDone(uid, 9);
  const int64_t revision = cluster.state.durable.meta.revision();
  cluster.StepDone(uid, 9);  // again
  cluster.StepDone(uid, 8);  // late
  v1::CoreEvent event;
  v1::StepReport& other = *event.mutable_step_report();
  other = cluster.state.live.jobs.at(uid).newest();
  other.set_rank(1);
  other.set_step(10);
  EXPECT_TRUE(cluster.Feed(event).mutations.empty());
  EXPECT_EQ(cluster.state.durable.meta.revision(), revision);
}

// Case: every rank's address goes to every node, and a message that is too large ended the session
// each time anew.
TEST(Job, ARankWhoseAddressFitsNoMessageEndsItsAttempt) {
  Cluster cluster;
  cluster.Hello("a", {.devices = 1});
  cluster.Hello("b", {.devices = 1});
  cluster.Submit("job", 2);
  v1::WorkerMessage ready;
  *ready.mutable_rank_ready()->mutable_rank() = cluster.ref("job", 0);
  ready.mutable_rank_ready()->set_address(std::string(4096, 'a'));
  cluster.Say("a", ready);
  ASSERT_TRUE(cluster.attempt("job").ranks(0).ready());
  *ready.mutable_rank_ready()->mutable_rank() = cluster.ref("job", 1);
  ready.mutable_rank_ready()->set_address(std::string(4097, 'a'));
  cluster.Say("b", ready);
  cluster.Say("b", ready);
  EXPECT_EQ(cluster.attempt("job").state(), v1::ATTEMPT_STATE_STOPPING);
  EXPECT_EQ(cluster.attempt("job").failed_node(), "b");
  EXPECT_EQ(cluster.attempt("job").ranks(1).address(), "");
  EXPECT_EQ(cluster.Count("a", v1::Command::kConnectRanks), 0);
  EXPECT_EQ(cluster.Count("a", v1::Command::kStopRanks), 1);
  EXPECT_EQ(cluster.events("job").back(), "ADDRESS_REFUSED");
  EXPECT_THAT(cluster.attempt("job").cause(), HasSubstr("4097 bytes"));
}

TEST(Job, AStaleEpochChangesNothing) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  const v1::CheckpointPart old_part = cluster.Part(uid, 5, 0);
  v1::WorkerMessage old_exit;
  *old_exit.mutable_rank_exited()->mutable_rank() = cluster.ref(uid, 0);
  old_exit.mutable_rank_exited()->mutable_exit()->set_code(93);
  cluster.Exit(uid, 1, 1);
  cluster.Exit(uid, 0, 0, 9, true);
  ASSERT_EQ(cluster.attempt(uid).number(), 2);
  const std::string before = cluster.job(uid).SerializeAsString();

  cluster.Say("a", old_exit);
  v1::WorkerMessage part;
  *part.mutable_checkpoint_part() = old_part;
  cluster.Say("a", part);
  v1::CoreEvent report;
  report.mutable_step_report()->set_job_uid(uid);
  report.mutable_step_report()->set_attempt(1);
  report.mutable_step_report()->set_epoch(1);
  report.mutable_step_report()->set_step(50);
  cluster.Feed(report);

  EXPECT_EQ(cluster.job(uid).SerializeAsString(), before);
  EXPECT_EQ(JobView(cluster.state, uid).last_step(), 1);
}

TEST(Cancel, OfAQueuedJobIsImmediate) {
  Cluster cluster;
  cluster.Submit("job", 2);
  const int64_t call = cluster.Cancel("job");
  EXPECT_EQ(cluster.replies.at(call).job().phase(), v1::JOB_PHASE_CANCELLED);
}

TEST(Cancel, OfARunningJobWaitsForItsRanks) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.Cancel(uid);
  ASSERT_EQ(cluster.Count("b", v1::Command::kStopRanks), 1);
  EXPECT_EQ(cluster.sent["b"].back().stop_ranks().grace().seconds(), 10);
  EXPECT_EQ(cluster.job(uid).phase(), v1::JOB_PHASE_RUNNING);
  EXPECT_FALSE(cluster.state.index.device_owner.empty());
  cluster.Exit(uid, 0, 0, 15, true);
  cluster.Exit(uid, 1, 0, 15, true);
  EXPECT_EQ(cluster.job(uid).phase(), v1::JOB_PHASE_CANCELLED);
  EXPECT_TRUE(cluster.state.index.device_owner.empty());
}

TEST(Cancel, IsIdempotentAndRefusedAfterAnotherEnd) {
  Cluster cluster;
  cluster.Submit("job", 2);
  cluster.Cancel("job");
  EXPECT_EQ(cluster.replies.at(cluster.Cancel("job")).code(), 0);
  EXPECT_EQ(cluster.replies.at(cluster.Cancel("nothing")).reason(), "JOB_NOT_FOUND");
  const JobUid uid = [&] {
    cluster.Hello("a");
    cluster.Submit("other", 1);
    cluster.Exit("other", 0, 0);
    return "other";
  }();
  EXPECT_EQ(cluster.replies.at(cluster.Cancel(uid)).reason(), "JOB_FINISHED");
  EXPECT_EQ(cluster.job(uid).phase(), v1::JOB_PHASE_SUCCEEDED);
}

TEST(Cancel, ARankThatWillNotEndIsToldAgainAndKeepsItsDevice) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.Cancel(uid);
  cluster.Exit(uid, 0, 0, 15, true);
  cluster.Run(absl::Seconds(31));
  EXPECT_EQ(cluster.Count("a", v1::Command::kStopRanks), 1);
  EXPECT_EQ(cluster.Count("b", v1::Command::kStopRanks), 2);
  EXPECT_EQ(cluster.events(uid).back(), "STOP_OVERDUE");
  EXPECT_TRUE(cluster.state.index.device_owner.contains("b"));
  EXPECT_FALSE(WaitingFor(cluster.state, uid).empty());
}

TEST(State, ASnapshotBehavesAsWhatItWasTakenOf) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.Save(uid, 5, 0);
  cluster.Submit("waiting", 1);
  State copy = FromSnapshot(ToSnapshot(cluster.state));
  EXPECT_TRUE(copy.index == cluster.state.index);

  v1::CoreEvent event;
  *event.mutable_worker()->mutable_message()->mutable_checkpoint_part() = cluster.Part(uid, 5, 1);
  event.mutable_worker()->set_node("b");
  event.mutable_worker()->set_session(2);
  const Decision expected = cluster.Feed(event);
  *event.mutable_now() = ToSnapshot(cluster.state).last_wall();
  const Decision decision = Step(copy, event);
  ASSERT_FALSE(expected.mutations.empty());
  ASSERT_EQ(decision.mutations.size(), expected.mutations.size());
  for (size_t i = 0; i < expected.mutations.size(); ++i) {
    EXPECT_EQ(decision.mutations[i].ShortDebugString(), expected.mutations[i].ShortDebugString());
  }
}

}  // namespace
}  // namespace mega::core
