#include "cli/client/client.h"

#include <chrono>

#include "base/message_size.h"
#include "base/tls/credentials.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/support/sync_stream.h"
#include "mega/v1/cluster.grpc.pb.h"
#include "mega/v1/job.grpc.pb.h"

namespace mega::cli {
namespace {

constexpr std::chrono::seconds kDeadline{10};
constexpr std::chrono::seconds kConnecting{2};

// UNAVAILABLE is retried (AIP-194): a coordinator started by the line before, or still loading its
// state, is waited for; a refused connection costs the user half a second, at most 1.2. What
// CallOnce sends has no such policy.
constexpr char kServiceConfig[] = R"({
  "methodConfig": [{
    "name": [{"service": "mega.v1.JobService", "method": "RestartJob"},
             {"service": "mega.v1.JobService", "method": "DeleteCheckpoint"}]
  }, {
    "name": [{}],
    "retryPolicy": {
      "maxAttempts": 5, "initialBackoff": "0.1s", "maxBackoff": "0.5s", "backoffMultiplier": 2,
      "retryableStatusCodes": ["UNAVAILABLE"]
    }
  }]
})";

std::shared_ptr<grpc::Channel> ChannelTo(const Target& target, const tls::Identity* identity) {
  grpc::ChannelArguments arguments;
  arguments.SetServiceConfigJSON(kServiceConfig);
  arguments.SetMaxReceiveMessageSize(kMostMessageBytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
  // A proxy of the environment is meant for the web, not for the cluster.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(
      target.address, tls::ChannelCredentials(identity, {tls::PeerName::Kind::kCoordinator, ""}),
      arguments);
}

template <typename Message>
class GrpcSource : public Stream<Message>::Source {
 public:
  // `open` starts the call: stub method(context, request).
  template <typename Open>
  GrpcSource(const Open& open, std::string target)
      : reader_(open(&context_)), target_(std::move(target)) {}

  bool Next(Message* message) override { return reader_->Read(message); }
  absl::Status Finish() override { return FromGrpc(reader_->Finish(), target_); }
  void Cancel() override { context_.TryCancel(); }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<Message>> reader_;
  std::string target_;
};

template <typename Stub, typename Request, typename Response>
absl::StatusOr<Response> Call(const std::string& target, Stub& stub,
                              grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                           Response*),
                              const Request& request) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kDeadline);
  Response response;
  const grpc::Status status = (stub.*method)(&context, request, &response);
  if (!status.ok()) return FromGrpc(status, target);
  return response;
}

// A restart may have been carried out though its answer was lost, and a second one would end the
// attempt that it made; a deletion's second answer would be that there is no such checkpoint. So a
// coordinator that is just being started is waited for first, and nothing is sent again.
template <typename Stub, typename Request, typename Response>
absl::StatusOr<Response> CallOnce(const std::string& target, grpc::Channel& channel, Stub& stub,
                                  grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                               Response*),
                                  const Request& request) {
  // Not connected, the call fails at once and says why.
  channel.WaitForConnected(std::chrono::system_clock::now() + kConnecting);
  return Call(target, stub, method, request);
}

// A whole list, page by page; `add` takes a page's items over.
template <typename Response, typename Request, typename Stub, typename Add>
absl::StatusOr<Response> AllPages(const std::string& target, Request request, Stub& stub,
                                  grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                               Response*),
                                  const Add& add) {
  Response all;
  request.set_page_size(1000);
  do {
    MEGA_ASSIGN_OR_RETURN(const Response page, Call(target, stub, method, request));
    if (page.next_page_token() == request.page_token() && !page.next_page_token().empty())
      return Internal("coordinator {} sent the same page twice", target);
    request.set_page_token(page.next_page_token());
    add(all, page);
  } while (!request.page_token().empty());
  return all;
}

}  // namespace

struct Client::Stubs {
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::JobService::Stub> jobs;
  std::unique_ptr<v1::ClusterService::Stub> cluster;
};

absl::StatusOr<Client> Client::Connect(Target target) {
  MEGA_ASSIGN_OR_RETURN(const std::shared_ptr<const tls::Identity> identity, IdentityAt(target));
  return Client(std::move(target), identity.get());
}

Client::Client(Target target, const tls::Identity* identity)
    : target_(std::move(target)),
      is_plain_text_(identity == nullptr),
      stubs_(std::make_unique<Stubs>()) {
  stubs_->channel = ChannelTo(target_, identity);
  stubs_->jobs = v1::JobService::NewStub(stubs_->channel);
  stubs_->cluster = v1::ClusterService::NewStub(stubs_->channel);
}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

// A bare handle is looked up in the namespace that was asked for, in all of them when none was.
std::string Client::FullHandle(const std::string& handle) const {
  if (target_.name_space.empty() || handle.find('/') != std::string::npos) return handle;
  return fmt::format("namespaces/{}/jobs/{}", target_.name_space, handle);
}

absl::StatusOr<v1::Job> Client::SubmitJob(const v1::SubmitJobRequest& request) {
  return Call(target_.address, *stubs_->jobs, &v1::JobService::Stub::SubmitJob, request);
}

absl::StatusOr<v1::Job> Client::GetJob(const std::string& handle) {
  v1::GetJobRequest request;
  request.set_name(FullHandle(handle));
  return Call(target_.address, *stubs_->jobs, &v1::JobService::Stub::GetJob, request);
}

absl::StatusOr<v1::ListJobsResponse> Client::ListJobs(const std::string& parent) {
  v1::ListJobsRequest request;
  request.set_parent(parent);
  return AllPages<v1::ListJobsResponse>(
      target_.address, request, *stubs_->jobs, &v1::JobService::Stub::ListJobs,
      [](v1::ListJobsResponse& all, const v1::ListJobsResponse& page) {
        all.mutable_jobs()->MergeFrom(page.jobs());
      });
}

absl::StatusOr<v1::Job> Client::CancelJob(const std::string& handle) {
  v1::CancelJobRequest request;
  request.set_name(FullHandle(handle));
  return Call(target_.address, *stubs_->jobs, &v1::JobService::Stub::CancelJob, request);
}

absl::StatusOr<v1::Job> Client::PauseJob(const std::string& handle) {
  v1::PauseJobRequest request;
  request.set_name(FullHandle(handle));
  return Call(target_.address, *stubs_->jobs, &v1::JobService::Stub::PauseJob, request);
}

absl::StatusOr<v1::Job> Client::ResumeJob(const std::string& handle) {
  v1::ResumeJobRequest request;
  request.set_name(FullHandle(handle));
  return Call(target_.address, *stubs_->jobs, &v1::JobService::Stub::ResumeJob, request);
}

absl::StatusOr<v1::Job> Client::RestartJob(const std::string& handle, int64_t from_step,
                                           bool from_beginning) {
  v1::RestartJobRequest request;
  request.set_name(FullHandle(handle));
  request.set_from_step(from_step);
  request.set_from_beginning(from_beginning);
  return CallOnce(target_.address, *stubs_->channel, *stubs_->jobs,
                  &v1::JobService::Stub::RestartJob, request);
}

absl::StatusOr<v1::Job> Client::ScaleJob(const std::string& handle, int64_t nodes, bool now) {
  v1::ScaleJobRequest request;
  request.set_name(FullHandle(handle));
  request.set_nodes(nodes);
  request.set_now(now);
  return Call(target_.address, *stubs_->jobs, &v1::JobService::Stub::ScaleJob, request);
}

absl::StatusOr<v1::Job> Client::SaveCheckpoint(const std::string& handle) {
  v1::SaveCheckpointRequest request;
  request.set_name(FullHandle(handle));
  return Call(target_.address, *stubs_->jobs, &v1::JobService::Stub::SaveCheckpoint, request);
}

absl::StatusOr<v1::Manifest> Client::PinCheckpoint(const std::string& handle, int64_t step,
                                                   bool pinned) {
  v1::PinCheckpointRequest request;
  request.set_name(FullHandle(handle));
  request.set_step(step);
  request.set_pinned(pinned);
  return Call(target_.address, *stubs_->jobs, &v1::JobService::Stub::PinCheckpoint, request);
}

absl::StatusOr<v1::Job> Client::DeleteCheckpoint(const std::string& handle, int64_t step,
                                                 bool force) {
  v1::DeleteCheckpointRequest request;
  request.set_name(FullHandle(handle));
  request.set_step(step);
  request.set_force(force);
  return CallOnce(target_.address, *stubs_->channel, *stubs_->jobs,
                  &v1::JobService::Stub::DeleteCheckpoint, request);
}

absl::StatusOr<v1::PlanJobResponse> Client::PlanJob(const v1::PlanJobRequest& request) {
  return Call(target_.address, *stubs_->jobs, &v1::JobService::Stub::PlanJob, request);
}

absl::StatusOr<v1::ListNodesResponse> Client::ListNodes() {
  return AllPages<v1::ListNodesResponse>(
      target_.address, v1::ListNodesRequest(), *stubs_->cluster,
      &v1::ClusterService::Stub::ListNodes,
      [](v1::ListNodesResponse& all, const v1::ListNodesResponse& page) {
        all.mutable_nodes()->MergeFrom(page.nodes());
      });
}

absl::StatusOr<v1::ListQueueResponse> Client::ListQueue(const std::string& parent) {
  v1::ListQueueRequest request;
  request.set_parent(parent);
  return AllPages<v1::ListQueueResponse>(
      target_.address, request, *stubs_->jobs, &v1::JobService::Stub::ListQueue,
      [](v1::ListQueueResponse& all, const v1::ListQueueResponse& page) {
        all.mutable_entries()->MergeFrom(page.entries());
      });
}

absl::StatusOr<v1::ListNamespacesResponse> Client::ListNamespaces() {
  return AllPages<v1::ListNamespacesResponse>(
      target_.address, v1::ListNamespacesRequest(), *stubs_->cluster,
      &v1::ClusterService::Stub::ListNamespaces,
      [](v1::ListNamespacesResponse& all, const v1::ListNamespacesResponse& page) {
        all.mutable_namespaces()->MergeFrom(page.namespaces());
      });
}

absl::StatusOr<v1::Namespace> Client::UpdateNamespace(const v1::Namespace& limits) {
  v1::UpdateNamespaceRequest request;
  *request.mutable_namespace_() = limits;
  return Call(target_.address, *stubs_->cluster, &v1::ClusterService::Stub::UpdateNamespace,
              request);
}

absl::Status Client::DeleteNamespace(const std::string& name) {
  v1::DeleteNamespaceRequest request;
  request.set_name(name);
  return Call(target_.address, *stubs_->cluster, &v1::ClusterService::Stub::DeleteNamespace,
              request)
      .status();
}

absl::StatusOr<v1::Node> Client::CordonNode(const std::string& name, const std::string& reason) {
  v1::CordonNodeRequest request;
  request.set_name(name);
  request.set_reason(reason);
  return Call(target_.address, *stubs_->cluster, &v1::ClusterService::Stub::CordonNode, request);
}

absl::StatusOr<v1::Node> Client::UncordonNode(const std::string& name) {
  v1::UncordonNodeRequest request;
  request.set_name(name);
  return Call(target_.address, *stubs_->cluster, &v1::ClusterService::Stub::UncordonNode, request);
}

absl::StatusOr<v1::Node> Client::DrainNode(const std::string& name, const std::string& reason,
                                           int64_t grace_seconds) {
  v1::DrainNodeRequest request;
  request.set_name(name);
  request.set_reason(reason);
  request.mutable_grace()->set_seconds(grace_seconds);
  return Call(target_.address, *stubs_->cluster, &v1::ClusterService::Stub::DrainNode, request);
}

absl::StatusOr<v1::GetVersionResponse> Client::GetVersion() {
  return Call(target_.address, *stubs_->cluster, &v1::ClusterService::Stub::GetVersion,
              v1::GetVersionRequest());
}

absl::StatusOr<v1::WhoAmIResponse> Client::WhoAmI() {
  return Call(target_.address, *stubs_->cluster, &v1::ClusterService::Stub::WhoAmI,
              v1::WhoAmIRequest());
}

Stream<v1::JobEvent> Client::WatchEvents(const v1::WatchEventsRequest& request) {
  const auto open = [&](grpc::ClientContext* context) {
    return stubs_->jobs->WatchEvents(context, request);
  };
  return Stream<v1::JobEvent>(std::make_unique<GrpcSource<v1::JobEvent>>(open, target_.address));
}

Stream<v1::LogChunk> Client::StreamLogs(const v1::StreamLogsRequest& request) {
  const auto open = [&](grpc::ClientContext* context) {
    return stubs_->jobs->StreamLogs(context, request);
  };
  return Stream<v1::LogChunk>(std::make_unique<GrpcSource<v1::LogChunk>>(open, target_.address));
}

Stream<v1::StepReport> Client::StreamSteps(const v1::StreamStepsRequest& request) {
  const auto open = [&](grpc::ClientContext* context) {
    return stubs_->jobs->StreamSteps(context, request);
  };
  return Stream<v1::StepReport>(
      std::make_unique<GrpcSource<v1::StepReport>>(open, target_.address));
}

bool IsFinal(v1::JobPhase phase) {
  return phase == v1::JOB_PHASE_SUCCEEDED || phase == v1::JOB_PHASE_FAILED ||
         phase == v1::JOB_PHASE_CANCELLED;
}

}  // namespace mega::cli
