#include "tests/coordinator/service/fixture.h"

#include "google/rpc/status.pb.h"
#include "tests/support/eventually.h"

namespace mega::service {

ServiceTest::ServiceTest() {
  options_.state_dir = dir_.path() + "/state";
  options_.failed = [](const absl::Status& status) { ADD_FAILURE() << status.ToString(); };
}

void ServiceTest::StartCoordinator(state::StateStore* store) {
  auto coordinator =
      store == nullptr ? Coordinator::Start(options_) : Coordinator::Start(options_, *store);
  ASSERT_TRUE(coordinator.ok()) << coordinator.status().ToString();
  coordinator_ = *std::move(coordinator);
  // A channel of its own: global subchannels would remember the last coordinator's back-off.
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  auto channel =
      grpc::CreateCustomChannel(address(), grpc::InsecureChannelCredentials(), arguments);
  jobs_ = v1::JobService::NewStub(channel);
  cluster_ = v1::ClusterService::NewStub(channel);
}

std::unique_ptr<grpc::ClientContext> ServiceTest::Context() const {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() + absl::ToChronoSeconds(kPatience));
  return context;
}

v1::SubmitJobRequest ServiceTest::Request(const std::string& name, int ranks, int steps) {
  v1::SubmitJobRequest request;
  request.set_request_id("request-of-" + name);
  request.mutable_metadata()->set_name(name);
  v1::JobSpec& spec = *request.mutable_spec();
  spec.mutable_model()->set_num_layers(1);
  spec.mutable_model()->set_hidden_size(16);
  spec.mutable_model()->set_ffn_hidden_size(32);
  spec.mutable_model()->set_num_attention_heads(2);
  spec.mutable_data()->add_paths("/data/text.txt");
  spec.mutable_data()->set_seq_length(8);
  spec.mutable_training()->set_steps(steps);
  spec.mutable_training()->set_global_batch_size(4);
  spec.mutable_optimizer()->set_lr(0.001);
  spec.mutable_parallelism()->set_data_parallel_size(ranks);
  return request;
}

grpc::Status ServiceTest::Submit(const v1::SubmitJobRequest& request, v1::Job* job) {
  return jobs_->SubmitJob(Context().get(), request, job);
}

v1::Job ServiceTest::MustSubmit(const v1::SubmitJobRequest& request) {
  v1::Job job;
  const grpc::Status status = Submit(request, &job);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return job;
}

v1::Job ServiceTest::GetJob(const std::string& name) {
  v1::GetJobRequest request;
  request.set_name(name);
  v1::Job job;
  const grpc::Status status = jobs_->GetJob(Context().get(), request, &job);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return job;
}

grpc::Status ServiceTest::Cancel(const std::string& name, v1::Job* job) {
  v1::CancelJobRequest request;
  request.set_name(name);
  return jobs_->CancelJob(Context().get(), request, job);
}

v1::Node ServiceTest::AwaitNode(const std::string& name) {
  v1::GetNodeRequest request;
  request.set_name(name);
  v1::Node node;
  grpc::Status status;
  testing::EventuallyWithin(kPatience, [&] {
    status = cluster_->GetNode(Context().get(), request, &node);
    return status.ok();
  });
  EXPECT_TRUE(status.ok()) << status.error_message();
  return node;
}

v1::Job ServiceTest::AwaitPhase(const std::string& name, v1::JobPhase phase) {
  v1::Job job;
  testing::EventuallyWithin(kPatience, [&] {
    job = GetJob(name);
    return job.phase() == phase;
  });
  EXPECT_EQ(v1::JobPhase_Name(job.phase()), v1::JobPhase_Name(phase)) << job.reason();
  return job;
}

std::vector<v1::JobEvent> ServiceTest::Events(const std::string& name, int64_t from_revision,
                                              bool follow) {
  v1::WatchEventsRequest request;
  request.set_name(name);
  request.set_from_revision(from_revision);
  request.set_follow(follow);
  const auto context = Context();
  const auto reader = jobs_->WatchEvents(context.get(), request);
  std::vector<v1::JobEvent> events;
  for (v1::JobEvent event; reader->Read(&event);) events.push_back(event);
  const grpc::Status status = reader->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  return events;
}

std::vector<v1::StepReport> ServiceTest::Steps(const std::string& name, int64_t from_step,
                                               bool follow) {
  v1::StreamStepsRequest request;
  request.set_name(name);
  request.set_from_step(from_step);
  request.set_follow(follow);
  const auto context = Context();
  const auto reader = jobs_->StreamSteps(context.get(), request);
  std::vector<v1::StepReport> steps;
  for (v1::StepReport step; reader->Read(&step);) steps.push_back(step);
  const grpc::Status status = reader->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  return steps;
}

namespace {

template <typename Detail>
Detail OnlyDetail(const grpc::Status& status) {
  google::rpc::Status rich;
  EXPECT_TRUE(rich.ParseFromString(status.error_details()));
  EXPECT_EQ(rich.code(), status.error_code());
  Detail found;
  int count = 0;
  for (const auto& any : rich.details()) count += any.UnpackTo(&found) ? 1 : 0;
  EXPECT_EQ(count, 1) << rich.ShortDebugString();
  return found;
}

}  // namespace

google::rpc::ErrorInfo ErrorInfoOf(const grpc::Status& status) {
  return OnlyDetail<google::rpc::ErrorInfo>(status);
}
google::rpc::BadRequest BadRequestOf(const grpc::Status& status) {
  return OnlyDetail<google::rpc::BadRequest>(status);
}
google::rpc::RetryInfo RetryInfoOf(const grpc::Status& status) {
  return OnlyDetail<google::rpc::RetryInfo>(status);
}

}  // namespace mega::service
