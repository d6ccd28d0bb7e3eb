// Committed checkpoints over the API: pinned, deleted, gone back to.
#include "gmock/gmock.h"
#include "tests/coordinator/service/fake_worker.h"
#include "tests/coordinator/service/fixture.h"

namespace mega::service {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Command = v1::Command;

class CheckpointsTest : public ServiceTest {
 protected:
  void SetUp() override {
    StartCoordinator();
    worker_.Connect(address());
    MustSubmit(Request("saved", 1, 100));
    start_ = StartAgain(1, 5);
    for (const int64_t step : {1, 2, 3}) Save(step);
  }

  v1::StartRanks StartAgain(int64_t from, int64_t to) {
    Command start, connect;
    EXPECT_TRUE(worker_.AwaitCommand(Command::kStartRanks, &start));
    worker_.Ready(start.start_ranks());
    EXPECT_TRUE(worker_.AwaitCommand(Command::kConnectRanks, &connect));
    EXPECT_TRUE(worker_.Report(start.start_ranks(), from, to).ok());
    return start.start_ranks();
  }
  // Returns when it is committed.
  void Save(int64_t step) {
    v1::WorkerMessage message;
    v1::CheckpointPart& part = *message.mutable_checkpoint_part();
    part.set_job_uid(start_.job_uid());
    part.set_attempt(start_.attempt());
    part.set_epoch(start_.epoch());
    part.set_step(step);
    part.set_directory("/checkpoints/step-" + std::to_string(step));
    part.mutable_state()->set_step(step);
    part.add_tensors()->set_name("scalar");
    part.mutable_tensors(0)->set_dtype("F32");
    part.add_slices()->set_tensor("scalar");
    part.mutable_slices(0)->set_file("file");
    part.add_files()->set_name("file");
    part.mutable_files(0)->set_bytes(4);
    worker_.Send(message);
    Command committed;  // an attempt also hears of those that the job keeps
    do {
      ASSERT_TRUE(worker_.AwaitCommand(Command::kCheckpointCommitted, &committed));
    } while (committed.checkpoint_committed().manifest().step() != step);
  }

  grpc::Status Pin(int64_t step, bool pinned, v1::Manifest* manifest) {
    v1::PinCheckpointRequest request;
    request.set_name("saved");
    request.set_step(step);
    request.set_pinned(pinned);
    return jobs_->PinCheckpoint(Context().get(), request, manifest);
  }
  grpc::Status Delete(int64_t step, bool force, v1::Job* job) {
    v1::DeleteCheckpointRequest request;
    request.set_name("saved");
    request.set_step(step);
    request.set_force(force);
    return jobs_->DeleteCheckpoint(Context().get(), request, job);
  }
  static std::vector<int64_t> StepsOf(const v1::Job& job) {
    std::vector<int64_t> steps;
    for (const v1::Manifest& manifest : job.checkpoints()) steps.push_back(manifest.step());
    return steps;
  }

  FakeWorker worker_{"w0", 1};
  v1::StartRanks start_;
};

TEST_F(CheckpointsTest, APinnedOneIsShownAsSuchAndDeletedByForceAlone) {
  v1::Manifest manifest;
  ASSERT_TRUE(Pin(1, true, &manifest).ok());
  EXPECT_TRUE(manifest.pinned());
  EXPECT_EQ(manifest.directory(), "/checkpoints/step-1");
  EXPECT_TRUE(GetJob("saved").checkpoints(0).pinned());

  v1::Job job;
  const grpc::Status refused = Delete(1, false, &job);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ErrorInfoOf(refused).reason(), "CHECKPOINT_PINNED");
  ASSERT_TRUE(Delete(1, true, &job).ok());
  EXPECT_THAT(StepsOf(job), ElementsAre(2, 3));
  Command order;
  ASSERT_TRUE(worker_.AwaitCommand(Command::kDeleteCheckpoint, &order));
  EXPECT_EQ(order.delete_checkpoint().directory(), "/checkpoints/step-1");

  const grpc::Status gone = Pin(1, true, &manifest);
  EXPECT_EQ(gone.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ErrorInfoOf(gone).reason(), "CHECKPOINT_NOT_FOUND");
  EXPECT_THAT(gone.error_message(), HasSubstr("those of steps 2 and 3"));
}

TEST_F(CheckpointsTest, ARestartFromAnOlderOneOutlivesTheCoordinator) {
  v1::RestartJobRequest request;
  request.set_name("saved");
  request.set_from_step(2);
  v1::Job job;
  ASSERT_TRUE(jobs_->RestartJob(Context().get(), request, &job).ok());
  EXPECT_THAT(StepsOf(job), ElementsAre(1, 2));
  Command stop;
  ASSERT_TRUE(worker_.AwaitCommand(Command::kStopRanks, &stop));
  StopCoordinator();
  StartCoordinator();
  worker_.Connect(address());
  ASSERT_TRUE(worker_.AwaitLease(1));
  worker_.Exit(start_, 143);
  start_ = StartAgain(3, 4);
  EXPECT_EQ(start_.load().step(), 2);
  Save(3);
  EXPECT_THAT(StepsOf(GetJob("saved")), ElementsAre(1, 2, 3));
  EXPECT_EQ(GetJob("saved").restarts(), 0);
}

}  // namespace
}  // namespace mega::service
