// Whole lives of jobs, with a scripted worker on the other side of real gRPC.
#include <future>

#include "gmock/gmock.h"
#include "tests/coordinator/service/fake_worker.h"
#include "tests/coordinator/service/fixture.h"
#include "tests/support/eventually.h"

namespace mega::service {
namespace {

using ::testing::HasSubstr;
using Command = v1::Command;

class LifeTest : public ServiceTest {
 protected:
  void SetUp() override { StartCoordinator(); }

  // Submits, and brings the job to Running with `reported` steps done.
  v1::StartRanks RunTo(FakeWorker& worker, const v1::SubmitJobRequest& request, int64_t reported) {
    MustSubmit(request);
    return StartAgain(worker, 1, reported);
  }
  v1::StartRanks StartAgain(FakeWorker& worker, int64_t from, int64_t to) {
    Command start, connect;
    EXPECT_TRUE(worker.AwaitCommand(Command::kStartRanks, &start));
    worker.Ready(start.start_ranks());
    EXPECT_TRUE(worker.AwaitCommand(Command::kConnectRanks, &connect));
    EXPECT_TRUE(worker.Report(start.start_ranks(), from, to).ok());
    return start.start_ranks();
  }
};

TEST_F(LifeTest, RunsFromSubmitToSucceeded) {
  FakeWorker worker("w0", 2);
  worker.Connect(address());
  v1::StartRanks start = RunTo(worker, Request("whole", /*ranks=*/2, /*steps=*/5), 3);
  EXPECT_EQ(start.ranks_size(), 2);
  EXPECT_EQ(start.plan().steps(), 5);
  AwaitPhase("whole", v1::JOB_PHASE_RUNNING);
  ASSERT_TRUE(worker.Report(start, 4, 5).ok());
  worker.Exit(start, 0);
  const v1::Job job = AwaitPhase("whole", v1::JOB_PHASE_SUCCEEDED);
  EXPECT_EQ(job.last_step(), 5);
  EXPECT_DOUBLE_EQ(job.last_loss(), 1.0);
}

TEST_F(LifeTest, ConnectRanksCarriesTheAddressOfEveryRank) {
  FakeWorker worker("w0", 2);
  worker.Connect(address());
  MustSubmit(Request("pair", 2));
  Command start, connect;
  ASSERT_TRUE(worker.AwaitCommand(Command::kStartRanks, &start));
  worker.Ready(start.start_ranks());
  ASSERT_TRUE(worker.AwaitCommand(Command::kConnectRanks, &connect));
  EXPECT_EQ(connect.connect_ranks().addresses_size(), 2);
}

TEST_F(LifeTest, StepsComeFromHistoryThenLiveEachOnce) {
  FakeWorker worker("w0", 1);
  worker.Connect(address());
  const v1::StartRanks start = RunTo(worker, Request("counted", 1, 6), 3);
  auto follower = std::async(std::launch::async, [&] { return Steps("counted", 2, true); });
  ASSERT_TRUE(worker.Report(start, 2, 6).ok());  // 2 and 3 are sent again, as after a broken stream
  worker.Exit(start, 0);
  std::vector<int64_t> steps;
  for (const v1::StepReport& step : follower.get()) steps.push_back(step.step());
  EXPECT_EQ(steps, (std::vector<int64_t>{2, 3, 4, 5, 6}));
  EXPECT_EQ(Steps("counted", 1, false).size(), 6u);
}

TEST_F(LifeTest, LastReportsMayComeAfterTheExits) {
  FakeWorker worker("w0", 1);
  worker.Connect(address());
  const v1::StartRanks start = RunTo(worker, Request("late", 1, 4), 2);
  auto follower = std::async(std::launch::async, [&] { return Steps("late", 1, true); });
  worker.Exit(start, 0);
  AwaitPhase("late", v1::JOB_PHASE_SUCCEEDED);
  ASSERT_TRUE(worker.Report(start, 3, 4).ok());
  EXPECT_EQ(follower.get().size(), 4u);
}

TEST_F(LifeTest, EventsAreGapFreeAndResumable) {
  FakeWorker worker("w0", 1);
  worker.Connect(address());
  MustSubmit(Request("watched", 1, 2));
  auto follower = std::async(std::launch::async, [&] { return Events("watched", 0, true); });
  const v1::StartRanks start = StartAgain(worker, 1, 2);
  worker.Exit(start, 0);
  const std::vector<v1::JobEvent> live = follower.get();
  ASSERT_GE(live.size(), 3u);
  EXPECT_EQ(live.front().reason(), "SUBMITTED");
  EXPECT_EQ(live.back().reason(), "SUCCEEDED");
  for (size_t i = 1; i < live.size(); ++i) EXPECT_GT(live[i].revision(), live[i - 1].revision());

  const std::vector<v1::JobEvent> stored = Events("watched", 0, false);
  ASSERT_EQ(stored.size(), live.size());
  const std::vector<v1::JobEvent> rest = Events("watched", live[1].revision(), false);
  ASSERT_EQ(rest.size(), live.size() - 2);
  EXPECT_EQ(rest.front().revision(), live[2].revision());
}

// Case: a running job was at step 0 again, until its next one, whenever the coordinator restarted.
TEST_F(LifeTest, ARestartRemembersHowFarARunningJobIs) {
  FakeWorker worker("w0", 1);
  worker.Connect(address());
  RunTo(worker, Request("far", 1, 9), 4);
  AwaitPhase("far", v1::JOB_PHASE_RUNNING);
  ASSERT_TRUE(
      mega::testing::EventuallyWithin(kPatience, [&] { return GetJob("far").last_step() == 4; }));
  const double loss = GetJob("far").last_loss();
  StopCoordinator();
  StartCoordinator();
  EXPECT_EQ(GetJob("far").last_step(), 4);
  EXPECT_EQ(GetJob("far").last_loss(), loss);
}

TEST_F(LifeTest, AWatcherOvertakenByTheDeletionOfOldEventsIsToldOfTheGap) {
  FakeWorker worker("w0", 1);
  worker.Connect(address());
  const v1::StartRanks start = RunTo(worker, Request("noisy", 1, 2), 2);
  // A client that takes little at a time: 64 KiB wait for it, no more.
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto jobs = v1::JobService::NewStub(
      grpc::CreateCustomChannel(address(), grpc::InsecureChannelCredentials(), arguments));
  v1::WatchEventsRequest request;
  request.set_name("noisy");
  request.set_follow(true);
  const auto context = Context();
  const auto reader = jobs->WatchEvents(context.get(), request);
  v1::JobEvent event;
  ASSERT_TRUE(reader->Read(&event));

  v1::WorkerMessage failed;
  v1::RankRef& rank = *failed.mutable_checkpoint_failed()->mutable_rank();
  rank.set_job_uid(start.job_uid());
  rank.set_attempt(start.attempt());
  rank.set_epoch(start.epoch());
  failed.mutable_checkpoint_failed()->set_message(std::string(4000, 'x'));
  for (int i = 0; i < 1500; ++i) worker.Send(failed);
  worker.Exit(start, 0);
  AwaitPhase("noisy", v1::JOB_PHASE_SUCCEEDED);

  while (reader->Read(&event)) {
  }
  const grpc::Status status = reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::OUT_OF_RANGE) << status.error_message();
  EXPECT_EQ(ErrorInfoOf(status).reason(), "REVISION_COMPACTED");
  EXPECT_EQ(Events("noisy", 0, false).size(), 1000u);  // the way out that it names
}

TEST_F(LifeTest, CoordinatorRestartKeepsTheAttemptAndRepeatsNothing) {
  FakeWorker worker("w0", 2);
  worker.Connect(address());
  const v1::StartRanks start = RunTo(worker, Request("steady", 2, 6), 3);
  const v1::Job before = AwaitPhase("steady", v1::JOB_PHASE_RUNNING);
  const int64_t commands = worker.commands_seen();

  StopCoordinator();
  StartCoordinator();
  worker.Connect(address());
  ASSERT_TRUE(worker.AwaitLease(1));
  ASSERT_TRUE(worker.Report(start, 4, 6).ok());
  worker.Exit(start, 0);
  const v1::Job after = AwaitPhase("steady", v1::JOB_PHASE_SUCCEEDED);
  EXPECT_EQ(after.attempts_size(), 1);
  EXPECT_EQ(after.attempts(0).epoch(), before.attempts(0).epoch());
  EXPECT_EQ(after.restarts(), 0);
  EXPECT_EQ(worker.commands_seen(), commands);
  EXPECT_EQ(Steps("steady", 1, false).size(), 6u);
}

TEST_F(LifeTest, FailedRankStartsTheJobAgainOnTheSameNode) {
  FakeWorker worker("w0", 1);
  worker.Connect(address());
  v1::StartRanks start = RunTo(worker, Request("stubborn", 1, 4), 2);
  worker.Exit(start, 1, "segmentation fault");
  start = StartAgain(worker, 1, 4);
  EXPECT_EQ(start.attempt(), 2);
  worker.Exit(start, 0);
  const v1::Job job = AwaitPhase("stubborn", v1::JOB_PHASE_SUCCEEDED);
  EXPECT_EQ(job.restarts(), 1);
  EXPECT_EQ(Steps("stubborn", 1, false).size(), 4u);
}

TEST_F(LifeTest, AJobIsShownWithTheEndOfStderrOfTheRankThatFailedAlone) {
  FakeWorker worker("w0", 2);
  worker.Connect(address());
  const v1::StartRanks start = RunTo(worker, Request("loud", 2, 4), 1);
  for (const int64_t rank : {1, 0}) {
    v1::WorkerMessage exited;
    v1::RankRef& ref = *exited.mutable_rank_exited()->mutable_rank();
    ref.set_job_uid(start.job_uid());
    ref.set_attempt(start.attempt());
    ref.set_epoch(start.epoch());
    ref.set_rank(rank);
    exited.mutable_rank_exited()->mutable_exit()->set_code(1);
    exited.mutable_rank_exited()->mutable_exit()->set_stderr_tail("last words");
    worker.Send(exited);
  }
  v1::Command again;
  ASSERT_TRUE(worker.AwaitCommand(v1::Command::kStartRanks, &again));
  const v1::Attempt attempt = GetJob("loud").attempts(0);
  EXPECT_EQ(attempt.failed_rank(), 1);
  EXPECT_EQ(attempt.ranks(1).exit().stderr_tail(), "last words");
  EXPECT_EQ(attempt.ranks(0).exit().stderr_tail(), "");
  EXPECT_EQ(attempt.ranks(0).exit().code(), 1);
}

TEST_F(LifeTest, ALargeMessageOfAWorkerDoesNotEndItsSession) {
  FakeWorker worker("w0", 1);
  worker.Connect(address());
  const v1::StartRanks start = RunTo(worker, Request("large", 1, 4), 1);
  v1::WorkerMessage message;
  v1::CheckpointPart& part = *message.mutable_checkpoint_part();
  part.set_job_uid(start.job_uid());
  part.set_attempt(start.attempt());
  part.set_epoch(start.epoch());
  part.set_step(1);
  part.set_directory("relative" + std::string(20 << 20, 'd'));
  worker.Send(message);
  worker.Exit(start, 0);
  AwaitPhase("large", v1::JOB_PHASE_SUCCEEDED);
}

TEST_F(LifeTest, CancelStopsTheRanks) {
  FakeWorker worker("w0", 1);
  worker.Connect(address());
  const v1::StartRanks start = RunTo(worker, Request("unwanted", 1, 100), 1);
  v1::Job job;
  ASSERT_TRUE(Cancel("unwanted", &job).ok());
  EXPECT_TRUE(job.cancel_requested());
  Command stop;
  ASSERT_TRUE(worker.AwaitCommand(Command::kStopRanks, &stop));
  worker.Exit(start, 143);
  AwaitPhase("unwanted", v1::JOB_PHASE_CANCELLED);
}

TEST_F(LifeTest, NodesAreListedWithWhatTheyHold) {
  FakeWorker worker("w0", 2);
  worker.Connect(address());
  RunTo(worker, Request("busy", 2), 1);
  v1::GetNodeRequest request;
  request.set_name("w0");
  v1::Node node;
  ASSERT_TRUE(cluster_->GetNode(Context().get(), request, &node).ok());
  EXPECT_EQ(node.devices_size(), 2);
  EXPECT_EQ(node.devices_in_use(), 2);
  v1::ListNodesResponse list;
  ASSERT_TRUE(cluster_->ListNodes(Context().get(), v1::ListNodesRequest(), &list).ok());
  EXPECT_EQ(list.nodes_size(), 1);
  request.set_name("w1");
  EXPECT_EQ(cluster_->GetNode(Context().get(), request, &node).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(LifeTest, PlanSaysWhatTheFleetWouldGive) {
  v1::PlanJobRequest request;
  *request.mutable_metadata() = Request("thought", 2).metadata();
  *request.mutable_spec() = Request("thought", 2).spec();
  v1::PlanJobResponse response;
  EXPECT_EQ(jobs_->PlanJob(Context().get(), request, &response).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
  FakeWorker worker("w0", 2);
  worker.Connect(address());
  ASSERT_TRUE(worker.AwaitLease(1));
  const absl::Time deadline = absl::Now() + kPatience;
  grpc::Status status;
  do {
    status = jobs_->PlanJob(Context().get(), request, &response);
  } while (!status.ok() && absl::Now() < deadline);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.plan().world_size(), 2);
}

// What a job without sizes asks for is the same whatever runs now: it waits rather than take what
// is left of the node.
TEST_F(LifeTest, BusyDevicesCountInWhatAJobWithoutSizesGets) {
  FakeWorker worker("w0", 4);
  worker.Connect(address());
  const v1::StartRanks first = RunTo(worker, Request("first", /*ranks=*/2), 1);

  v1::SubmitJobRequest second = Request("second");
  second.mutable_spec()->mutable_parallelism()->clear_data_parallel_size();
  second.mutable_spec()->mutable_training()->set_global_batch_size(8);
  v1::PlanJobRequest asked;
  *asked.mutable_metadata() = second.metadata();
  *asked.mutable_spec() = second.spec();
  v1::PlanJobResponse planned;
  const grpc::Status status = jobs_->PlanJob(Context().get(), asked, &planned);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(planned.plan().world_size(), 4);

  MustSubmit(second);
  worker.Exit(first, 0);
  Command start;
  ASSERT_TRUE(worker.AwaitCommand(Command::kStartRanks, &start));
  EXPECT_EQ(start.start_ranks().job_name(), "second");
  EXPECT_EQ(start.start_ranks().ranks_size(), 4);
}

TEST_F(LifeTest, SecondWorkerOfOneNameDoesNotDisturbTheFirst) {
  FakeWorker worker("w0", 1);
  worker.Connect(address());
  const v1::StartRanks start = RunTo(worker, Request("guarded", 1, 4), 2);
  const int64_t attempts = GetJob("guarded").attempts_size();
  worker.Disconnect();
  worker.Connect(address());  // the same incarnation, within its lease
  ASSERT_TRUE(worker.Report(start, 3, 4).ok());
  worker.Exit(start, 0);
  EXPECT_EQ(AwaitPhase("guarded", v1::JOB_PHASE_SUCCEEDED).attempts_size(), attempts);
}

}  // namespace
}  // namespace mega::service
