#include "cli/client/client.h"

#include <chrono>

#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"

namespace mega::cli {
namespace {

constexpr std::chrono::seconds kDeadline{10};
constexpr int kMaxMessageBytes = 16 << 20;

// UNAVAILABLE is retried (AIP-194); a refused connection costs the user under a second.
constexpr char kServiceConfig[] = R"({
  "methodConfig": [{
    "name": [{}],
    "retryPolicy": {
      "maxAttempts": 4, "initialBackoff": "0.05s", "maxBackoff": "0.5s", "backoffMultiplier": 2,
      "retryableStatusCodes": ["UNAVAILABLE"]
    }
  }]
})";

std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetServiceConfigJSON(kServiceConfig);
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
  // A proxy of the environment is meant for the web, not for the cluster.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

Client::Client(Target target) : target_(std::move(target)) {
  const std::shared_ptr<grpc::Channel> channel = Connect(target_.address);
  jobs_ = v1::JobService::NewStub(channel);
  cluster_ = v1::ClusterService::NewStub(channel);
}

template <typename Stub, typename Request, typename Response>
absl::StatusOr<Response> Client::Call(Stub& stub,
                                      grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                                   const Request&, Response*),
                                      const Request& request) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kDeadline);
  Response response;
  const grpc::Status status = (stub.*method)(&context, request, &response);
  if (!status.ok()) return FromGrpc(status, target_.address);
  return response;
}

// A bare handle is looked up in the namespace that was asked for, in all of them when none was.
std::string Client::FullHandle(const std::string& handle) const {
  if (target_.name_space.empty() || handle.find('/') != std::string::npos) return handle;
  return fmt::format("namespaces/{}/jobs/{}", target_.name_space, handle);
}

absl::StatusOr<v1::Job> Client::SubmitJob(const v1::SubmitJobRequest& request) {
  return Call(*jobs_, &v1::JobService::Stub::SubmitJob, request);
}

absl::StatusOr<v1::Job> Client::GetJob(const std::string& handle) {
  v1::GetJobRequest request;
  request.set_name(FullHandle(handle));
  return Call(*jobs_, &v1::JobService::Stub::GetJob, request);
}

absl::StatusOr<v1::ListJobsResponse> Client::ListJobs(const std::string& parent) {
  v1::ListJobsResponse all;
  v1::ListJobsRequest request;
  request.set_parent(parent);
  request.set_page_size(1000);
  do {
    MEGA_ASSIGN_OR_RETURN(v1::ListJobsResponse page,
                          Call(*jobs_, &v1::JobService::Stub::ListJobs, request));
    if (page.next_page_token() == request.page_token() && !page.next_page_token().empty())
      return Internal("coordinator {} sent the same page twice", target_.address);
    request.set_page_token(page.next_page_token());
    all.mutable_jobs()->MergeFrom(page.jobs());
  } while (!request.page_token().empty());
  return all;
}

absl::StatusOr<v1::Job> Client::CancelJob(const std::string& handle) {
  v1::CancelJobRequest request;
  request.set_name(FullHandle(handle));
  return Call(*jobs_, &v1::JobService::Stub::CancelJob, request);
}

absl::StatusOr<v1::PlanJobResponse> Client::PlanJob(const v1::PlanJobRequest& request) {
  return Call(*jobs_, &v1::JobService::Stub::PlanJob, request);
}

absl::StatusOr<v1::ListNodesResponse> Client::ListNodes() {
  v1::ListNodesResponse all;
  v1::ListNodesRequest request;
  request.set_page_size(1000);
  do {
    MEGA_ASSIGN_OR_RETURN(v1::ListNodesResponse page,
                          Call(*cluster_, &v1::ClusterService::Stub::ListNodes, request));
    if (page.next_page_token() == request.page_token() && !page.next_page_token().empty())
      return Internal("coordinator {} sent the same page twice", target_.address);
    request.set_page_token(page.next_page_token());
    all.mutable_nodes()->MergeFrom(page.nodes());
  } while (!request.page_token().empty());
  return all;
}

absl::StatusOr<v1::GetVersionResponse> Client::GetVersion() {
  return Call(*cluster_, &v1::ClusterService::Stub::GetVersion, v1::GetVersionRequest());
}

Stream<v1::JobEvent> Client::WatchEvents(const v1::WatchEventsRequest& request) {
  auto context = std::make_unique<grpc::ClientContext>();
  auto reader = jobs_->WatchEvents(context.get(), request);
  return {std::move(context), std::move(reader), target_.address};
}

Stream<v1::LogChunk> Client::StreamLogs(const v1::StreamLogsRequest& request) {
  auto context = std::make_unique<grpc::ClientContext>();
  auto reader = jobs_->StreamLogs(context.get(), request);
  return {std::move(context), std::move(reader), target_.address};
}

Stream<v1::StepReport> Client::StreamSteps(const v1::StreamStepsRequest& request) {
  auto context = std::make_unique<grpc::ClientContext>();
  auto reader = jobs_->StreamSteps(context.get(), request);
  return {std::move(context), std::move(reader), target_.address};
}

bool IsFinal(v1::JobPhase phase) {
  return phase == v1::JOB_PHASE_SUCCEEDED || phase == v1::JOB_PHASE_FAILED ||
         phase == v1::JOB_PHASE_CANCELLED;
}

}  // namespace mega::cli
