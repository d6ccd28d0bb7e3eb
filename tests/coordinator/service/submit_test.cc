#include <atomic>
#include <set>
#include <thread>

#include "gmock/gmock.h"
#include "tests/coordinator/service/fixture.h"

namespace mega::service {
namespace {

using ::testing::HasSubstr;

class SubmitTest : public ServiceTest {
 protected:
  void SetUp() override { StartCoordinator(); }
};

TEST_F(SubmitTest, StoresTheSpecAsGivenAndAsResolved) {
  const v1::Job job = MustSubmit(Request("first"));
  EXPECT_EQ(job.metadata().name(), "first");
  EXPECT_EQ(job.metadata().namespace_(), "default");
  EXPECT_EQ(job.name(), "namespaces/default/jobs/" + job.uid());
  EXPECT_FALSE(job.spec().training().has_seed());
  EXPECT_TRUE(job.resolved_spec().training().has_seed());
  EXPECT_EQ(GetJob("first").uid(), job.uid());
}

TEST_F(SubmitTest, HundredAtOnceWithOneRequestIdGiveOneJob) {
  constexpr int kCalls = 100;
  std::vector<std::string> uids(kCalls);
  {
    std::vector<std::jthread> callers;
    for (int i = 0; i < kCalls; ++i) {
      callers.emplace_back([&, i] { uids[i] = MustSubmit(Request("one")).uid(); });
    }
  }
  EXPECT_EQ(std::set(uids.begin(), uids.end()).size(), 1u);
  v1::ListJobsResponse list;
  ASSERT_TRUE(jobs_->ListJobs(Context().get(), v1::ListJobsRequest(), &list).ok());
  EXPECT_EQ(list.jobs_size(), 1);
}

TEST_F(SubmitTest, RequestIdGivesTheSameJobAfterARestart) {
  const std::string uid = MustSubmit(Request("lasting")).uid();
  StopCoordinator();
  StartCoordinator();
  EXPECT_EQ(MustSubmit(Request("lasting")).uid(), uid);
}

TEST_F(SubmitTest, SameRequestIdForAnotherSpecIsRefused) {
  MustSubmit(Request("mine"));
  v1::SubmitJobRequest other = Request("mine");
  other.mutable_spec()->mutable_training()->set_steps(99);
  v1::Job job;
  const grpc::Status status = Submit(other, &job);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.error_message(), HasSubstr("request"));
  EXPECT_FALSE(ErrorInfoOf(status).reason().empty());
}

TEST_F(SubmitTest, WithoutRequestIdIsRefusedByField) {
  v1::SubmitJobRequest request = Request("anonymous");
  request.clear_request_id();
  v1::Job job;
  const grpc::Status status = Submit(request, &job);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(BadRequestOf(status).field_violations(0).field(), "request_id");
  request.set_request_id("a\x01");
  EXPECT_THAT(Submit(request, &job).error_message(), HasSubstr("'a?' holds a control character"));
  EXPECT_EQ(ErrorInfoOf(status).domain(), "mega");
}

TEST_F(SubmitTest, BadSpecNamesEveryField) {
  v1::SubmitJobRequest request = Request("bad");
  request.mutable_spec()->mutable_training()->set_global_batch_size(0);
  request.mutable_spec()->mutable_optimizer()->set_beta1(2);
  request.mutable_spec()->mutable_model()->set_activation("tanh");
  v1::Job job;
  const grpc::Status status = Submit(request, &job);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ErrorInfoOf(status).reason(), "SPEC_INVALID");
  std::set<std::string> fields;
  const google::rpc::BadRequest bad = BadRequestOf(status);
  for (const auto& violation : bad.field_violations()) {
    fields.insert(violation.field());
    EXPECT_FALSE(violation.description().empty());
  }
  EXPECT_THAT(fields, ::testing::IsSupersetOf(
                          {"training.global_batch_size", "optimizer.beta1", "model.activation"}));
}

TEST_F(SubmitTest, AModelFolderThatWasNotReadWhereItIsIsRefused) {
  v1::SubmitJobRequest request = Request("elsewhere");
  request.mutable_spec()->mutable_model()->Clear();
  request.mutable_spec()->mutable_model()->set_hf(MEGA_TEST_DATA "/models/llama");  // readable here
  v1::Job job;
  const grpc::Status status = Submit(request, &job);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  const google::rpc::BadRequest bad = BadRequestOf(status);
  ASSERT_EQ(bad.field_violations_size(), 1);
  EXPECT_EQ(bad.field_violations(0).field(), "model.hf");
  EXPECT_THAT(bad.field_violations(0).description(), HasSubstr("submit it with megactl"));
}

TEST_F(SubmitTest, VeryManyViolationsStillReachTheClient) {
  v1::SubmitJobRequest request = Request("worse");
  for (int i = 0; i < 500; ++i) {
    request.mutable_spec()->mutable_data()->add_blend(i);
    (*request.mutable_metadata()->mutable_labels())["Not A Label " + std::to_string(i)] =
        std::string(300, 'x');
  }
  v1::Job job;
  const grpc::Status status = Submit(request, &job);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_GT(BadRequestOf(status).field_violations_size(), 1);
}

TEST_F(SubmitTest, LayoutThatNoClusterCanHoldIsRefusedAtOnce) {
  v1::SubmitJobRequest request = Request("impossible", /*ranks=*/3);
  request.mutable_spec()->mutable_resources()->mutable_nodes()->set_desired(1);
  request.mutable_spec()->mutable_resources()->set_devices_per_node(2);
  v1::Job job;
  const grpc::Status status = Submit(request, &job);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
}

// Case: a job of two nodes "succeeded", and each had kept half of its checkpoint on its own disk.
TEST_F(SubmitTest, SeveralNodesNeedACheckpointDirectory) {
  v1::SubmitJobRequest request = Request("apart", /*ranks=*/2);
  v1::JobSpec& spec = *request.mutable_spec();
  spec.mutable_resources()->mutable_nodes()->set_desired(2);
  request.set_validate_only(true);
  v1::Job job;
  const grpc::Status status = Submit(request, &job);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
  const auto bad = BadRequestOf(status);
  ASSERT_EQ(bad.field_violations_size(), 1);
  EXPECT_EQ(bad.field_violations(0).field(), "checkpoint.directory");
  spec.mutable_training()->set_steps(-1);
  EXPECT_EQ(BadRequestOf(Submit(request, &job)).field_violations_size(), 2) << "all at once";
  spec.mutable_training()->set_steps(1);
  spec.mutable_checkpoint()->set_directory("/shared");
  EXPECT_TRUE(Submit(request, &job).ok());
  spec.mutable_checkpoint()->clear_directory();
  spec.mutable_checkpoint()->set_save_on_exit(false);
  spec.mutable_checkpoint()->set_interval_steps(0);
  EXPECT_TRUE(Submit(request, &job).ok()) << "nothing is saved";
}

TEST_F(SubmitTest, HugeLayoutIsRefusedCheaply) {
  v1::SubmitJobRequest request = Request("huge", /*ranks=*/1);
  request.mutable_spec()->mutable_parallelism()->set_data_parallel_size(int64_t{1} << 40);
  v1::Job job;
  EXPECT_EQ(Submit(request, &job).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  request.mutable_spec()->mutable_parallelism()->set_data_parallel_size(65'537);
  EXPECT_THAT(Submit(request, &job).error_message(), HasSubstr("at most 65536 devices"));
}

TEST_F(SubmitTest, ValidateOnlyStoresNothing) {
  v1::SubmitJobRequest request = Request("dry");
  request.set_validate_only(true);
  request.clear_request_id();
  v1::Job job;
  ASSERT_TRUE(Submit(request, &job).ok());
  EXPECT_TRUE(job.resolved_spec().training().has_seed());
  v1::ListJobsResponse list;
  ASSERT_TRUE(jobs_->ListJobs(Context().get(), v1::ListJobsRequest(), &list).ok());
  EXPECT_EQ(list.jobs_size(), 0);
}

TEST_F(SubmitTest, JobsAreFoundByUniquePrefix) {
  const std::string red = MustSubmit(Request("red-one")).uid();
  MustSubmit(Request("red-two"));
  EXPECT_EQ(GetJob("red-o").uid(), red);
  EXPECT_EQ(GetJob(red.substr(0, 8)).uid(), red);
  EXPECT_EQ(GetJob("namespaces/default/jobs/" + red).uid(), red);

  v1::GetJobRequest request;
  request.set_name("red");
  v1::Job job;
  grpc::Status status = jobs_->GetJob(Context().get(), request, &job);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr(red));
  EXPECT_EQ(ErrorInfoOf(status).reason(), "JOB_NAME_AMBIGUOUS");

  request.set_name("blue");
  status = jobs_->GetJob(Context().get(), request, &job);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ErrorInfoOf(status).reason(), "JOB_NOT_FOUND");
}

TEST_F(SubmitTest, NameOfAFinishedJobMeansTheNewest) {
  MustSubmit(Request("again"));
  v1::Job job;
  ASSERT_TRUE(Cancel("again", &job).ok());
  v1::SubmitJobRequest second = Request("again");
  second.set_request_id("another");
  const std::string uid = MustSubmit(second).uid();
  EXPECT_EQ(GetJob("again").uid(), uid);
}

TEST_F(SubmitTest, PagesHoldEveryJobOnce) {
  std::set<std::string> all;
  for (int i = 0; i < 7; ++i) all.insert(MustSubmit(Request("job-" + std::to_string(i))).uid());
  std::set<std::string> listed;
  v1::ListJobsRequest request;
  request.set_parent("namespaces/default");
  request.set_page_size(3);
  std::vector<int> sizes;
  do {
    v1::ListJobsResponse page;
    ASSERT_TRUE(jobs_->ListJobs(Context().get(), request, &page).ok());
    sizes.push_back(page.jobs_size());
    for (const v1::Job& job : page.jobs()) EXPECT_TRUE(listed.insert(job.uid()).second);
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_EQ(listed, all);
  EXPECT_EQ(sizes, (std::vector{3, 3, 1}));
}

TEST_F(SubmitTest, PageTokenOfAnotherQueryIsRefused) {
  for (int i = 0; i < 3; ++i) MustSubmit(Request("job-" + std::to_string(i)));
  v1::ListJobsRequest request;
  request.set_page_size(1);
  v1::ListJobsResponse page;
  ASSERT_TRUE(jobs_->ListJobs(Context().get(), request, &page).ok());
  request.set_page_token(page.next_page_token());
  request.set_parent("namespaces/other");
  grpc::Status status = jobs_->ListJobs(Context().get(), request, &page);
  EXPECT_EQ(ErrorInfoOf(status).reason(), "PAGE_TOKEN_INVALID");
  request.set_page_token("rubbish");
  status = jobs_->ListJobs(Context().get(), request, &page);
  EXPECT_EQ(ErrorInfoOf(status).reason(), "PAGE_TOKEN_INVALID");
  request.clear_page_token();
  request.set_page_size(1001);
  status = jobs_->ListJobs(Context().get(), request, &page);
  EXPECT_EQ(ErrorInfoOf(status).reason(), "PAGE_SIZE_INVALID");
}

TEST_F(SubmitTest, AForgottenJobIsNotFoundAndItsNameAndRequestAreFree) {
  StopCoordinator();
  options_.core.most_ended_jobs = 1;
  StartCoordinator();
  const v1::Job first = MustSubmit(Request("first"));
  MustSubmit(Request("second"));
  v1::Job job;
  ASSERT_TRUE(Cancel("first", &job).ok());
  ASSERT_TRUE(Cancel("second", &job).ok());
  v1::GetJobRequest request;
  request.set_name(first.uid());
  const absl::Time deadline = absl::Now() + kPatience;
  grpc::Status status;
  do {
    status = jobs_->GetJob(Context().get(), request, &job);
  } while (status.ok() && absl::Now() < deadline);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  v1::ListJobsResponse list;
  ASSERT_TRUE(jobs_->ListJobs(Context().get(), v1::ListJobsRequest(), &list).ok());
  EXPECT_EQ(list.jobs_size(), 1);
  EXPECT_NE(MustSubmit(Request("first")).uid(), first.uid());
}

TEST_F(SubmitTest, QueuedJobIsCancelledAtOnce) {
  MustSubmit(Request("unwanted"));
  v1::Job job;
  ASSERT_TRUE(Cancel("unwanted", &job).ok());
  AwaitPhase("unwanted", v1::JOB_PHASE_CANCELLED);
}

TEST_F(SubmitTest, QueuePositionsCountFromOne) {
  MustSubmit(Request("head"));
  MustSubmit(Request("tail"));
  const absl::Time deadline = absl::Now() + kPatience;
  while (GetJob("tail").queue_position() != 2 && absl::Now() < deadline) {
  }
  EXPECT_EQ(GetJob("head").queue_position(), 1);
  EXPECT_EQ(GetJob("tail").queue_position(), 2);
}

}  // namespace
}  // namespace mega::service
