// Jobs as calls answer them: the same view for all, which a message can hold.
#include "coordinator/state/memory_store.h"
#include "gmock/gmock.h"
#include "tests/coordinator/service/fixture.h"

namespace mega::service {
namespace {

class AnswersTest : public ServiceTest {
 protected:
  void TearDown() override { StopCoordinator(); }  // before the store goes

  // A job that waits, after an attempt of two ranks that failed, with checkpoints of which each
  // knows its slices.
  void Store(const v1::SubmitJobRequest& request) {
    std::vector<v1::Mutation> mutations(2);
    mutations[0].mutable_put_meta()->set_revision(1);
    v1::Job& job = *mutations[1].mutable_put_job();
    job.set_uid("uidofheavy12");
    job.set_name("namespaces/default/jobs/uidofheavy12");
    *job.mutable_metadata() = request.metadata();
    job.mutable_metadata()->set_namespace_("default");
    *job.mutable_spec() = request.spec();
    *job.mutable_resolved_spec() = request.spec();
    job.set_request_id(request.request_id());
    job.set_phase(v1::JOB_PHASE_RECOVERING);
    job.mutable_create_time()->set_seconds(1'700'000'000);
    for (const int64_t step : {10, 20}) {
      v1::Manifest& manifest = *job.add_checkpoints();
      manifest.set_step(step);
      manifest.set_directory("/checkpoints");
      manifest.add_slices()->set_tensor("weight");
      manifest.add_tensors()->set_name("weight");
    }
    v1::Attempt& attempt = *job.add_attempts();
    attempt.set_number(1);
    attempt.set_epoch(1);
    attempt.set_state(v1::ATTEMPT_STATE_ENDED);
    attempt.set_has_failed_rank(true);
    attempt.set_failed_rank(1);
    *attempt.mutable_load() = job.checkpoints(0);
    for (const int64_t rank : {0, 1}) {
      v1::RankState& state = *attempt.add_ranks();
      state.set_rank(rank);
      state.set_node("n");
      state.set_exited(true);
      state.mutable_exit()->set_code(1);
      state.mutable_exit()->set_stderr_tail("last words");
    }
    ASSERT_TRUE(store_.Commit(mutations).ok());
  }

  static void ExpectFits(const std::string& call, const grpc::Status& status, const v1::Job& job) {
    ASSERT_TRUE(status.ok()) << call << ": " << status.error_message();
    EXPECT_EQ(job.uid(), "uidofheavy12") << call;
    ASSERT_EQ(job.checkpoints_size(), 2) << call;
    EXPECT_EQ(job.checkpoints(1).step(), 20) << call;
    for (const v1::Manifest& manifest : job.checkpoints()) {
      EXPECT_EQ(manifest.slices_size() + manifest.tensors_size(), 0) << call;
    }
    ASSERT_EQ(job.attempts_size(), 1) << call;
    EXPECT_EQ(job.attempts(0).load().slices_size(), 0) << call;
    EXPECT_EQ(job.attempts(0).ranks(0).exit().stderr_tail(), "") << call;
    EXPECT_EQ(job.attempts(0).ranks(1).exit().stderr_tail(), "last words") << call;
  }

  state::MemoryStore store_;
};

// Case: with four manifests of 17 MiB a job was paused, and whoever asked for it was told that the
// answer was too large.
TEST_F(AnswersTest, WhatIsDoneToAJobAnswersAsMuchOfItAsLookingAtItDoes) {
  const v1::SubmitJobRequest request = Request("heavy");
  Store(request);
  StartCoordinator(&store_);
  v1::Job job;
  ExpectFits("GetJob", grpc::Status::OK, GetJob("heavy"));
  ExpectFits("SubmitJob, again", Submit(request, &job), job);
  v1::PauseJobRequest pause;
  pause.set_name("heavy");
  ExpectFits("PauseJob", jobs_->PauseJob(Context().get(), pause, &job), job);
  EXPECT_EQ(job.phase(), v1::JOB_PHASE_PAUSED);
  v1::ResumeJobRequest resume;
  resume.set_name("heavy");
  ExpectFits("ResumeJob", jobs_->ResumeJob(Context().get(), resume, &job), job);
  EXPECT_EQ(job.queue_position(), 1);
  ExpectFits("CancelJob", Cancel("heavy", &job), job);
  EXPECT_EQ(job.phase(), v1::JOB_PHASE_CANCELLED);
}

}  // namespace
}  // namespace mega::service
