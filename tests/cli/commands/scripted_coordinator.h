// A gRPC server that answers as told, for megactl to talk to.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "mega/v1/cluster.grpc.pb.h"
#include "mega/v1/job.grpc.pb.h"

namespace mega::cli {

// A status with google.rpc details: what the real coordinator sends.
inline grpc::Status SpecInvalid(const std::string& field, const std::string& description) {
  google::rpc::BadRequest request;
  request.add_field_violations()->set_field(field);
  request.mutable_field_violations(0)->set_description(description);
  google::rpc::ErrorInfo info;
  info.set_reason("SPEC_INVALID");
  google::rpc::Status details;
  details.set_code(3);
  details.add_details()->PackFrom(info);
  details.add_details()->PackFrom(request);
  return {grpc::StatusCode::INVALID_ARGUMENT, description, details.SerializeAsString()};
}

class ScriptedCoordinator : public v1::JobService::Service, public v1::ClusterService::Service {
 public:
  ScriptedCoordinator() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(static_cast<v1::JobService::Service*>(this));
    builder.RegisterService(static_cast<v1::ClusterService::Service*>(this));
    server_ = builder.BuildAndStart();
  }
  ~ScriptedCoordinator() override { server_->Shutdown(std::chrono::system_clock::now()); }

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  // Set before megactl is started. A null function answers UNIMPLEMENTED.
  std::function<grpc::Status(const v1::SubmitJobRequest&, v1::Job*)> submit;
  std::function<grpc::Status(const v1::GetJobRequest&, v1::Job*)> get;
  std::function<grpc::Status(const v1::ListJobsRequest&, v1::ListJobsResponse*)> list;
  std::function<grpc::Status(const v1::CancelJobRequest&, v1::Job*)> cancel;
  std::function<grpc::Status(const v1::RestartJobRequest&, v1::Job*)> restart;
  std::function<grpc::Status(const v1::SaveCheckpointRequest&, v1::Job*)> save;
  std::function<grpc::Status(const v1::PinCheckpointRequest&, v1::Manifest*)> pin;
  std::function<grpc::Status(const v1::DeleteCheckpointRequest&, v1::Job*)> delete_checkpoint;
  std::function<grpc::Status(const v1::ListQueueRequest&, v1::ListQueueResponse*)> queue;
  std::function<grpc::Status(const v1::ListNamespacesRequest&, v1::ListNamespacesResponse*)>
      namespaces;
  std::function<grpc::Status(const v1::UpdateNamespaceRequest&, v1::Namespace*)> set_namespace;
  std::function<grpc::Status(const v1::DrainNodeRequest&, v1::Node*)> drain;
  // One node in good health unless it is set.
  std::function<grpc::Status(const v1::ListNodesRequest&, v1::ListNodesResponse*)> nodes;
  std::function<grpc::Status(const v1::StreamStepsRequest&, grpc::ServerWriter<v1::StepReport>*)>
      steps;
  std::function<grpc::Status(const v1::StreamLogsRequest&, grpc::ServerWriter<v1::LogChunk>*)> logs;
  std::function<grpc::Status(const v1::WatchEventsRequest&, grpc::ServerWriter<v1::JobEvent>*)>
      events;

  // How long the last client that asked for a restart or a deletion would wait for its answer.
  std::atomic<std::chrono::system_clock::duration> patience{};

 private:
  template <typename Function, typename... Arguments>
  static grpc::Status Answer(const Function& function, Arguments&&... arguments) {
    return function ? function(std::forward<Arguments>(arguments)...)
                    : grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "not scripted");
  }
  grpc::Status SubmitJob(grpc::ServerContext*, const v1::SubmitJobRequest* request,
                         v1::Job* job) override {
    return Answer(submit, *request, job);
  }
  grpc::Status GetJob(grpc::ServerContext*, const v1::GetJobRequest* request,
                      v1::Job* job) override {
    return Answer(get, *request, job);
  }
  grpc::Status ListJobs(grpc::ServerContext*, const v1::ListJobsRequest* request,
                        v1::ListJobsResponse* response) override {
    return Answer(list, *request, response);
  }
  grpc::Status CancelJob(grpc::ServerContext*, const v1::CancelJobRequest* request,
                         v1::Job* job) override {
    return Answer(cancel, *request, job);
  }
  grpc::Status RestartJob(grpc::ServerContext* context, const v1::RestartJobRequest* request,
                          v1::Job* job) override {
    patience = context->deadline() - std::chrono::system_clock::now();
    return Answer(restart, *request, job);
  }
  grpc::Status SaveCheckpoint(grpc::ServerContext*, const v1::SaveCheckpointRequest* request,
                              v1::Job* job) override {
    return Answer(save, *request, job);
  }
  grpc::Status PinCheckpoint(grpc::ServerContext*, const v1::PinCheckpointRequest* request,
                             v1::Manifest* manifest) override {
    return Answer(pin, *request, manifest);
  }
  grpc::Status DeleteCheckpoint(grpc::ServerContext* context,
                                const v1::DeleteCheckpointRequest* request, v1::Job* job) override {
    patience = context->deadline() - std::chrono::system_clock::now();
    return Answer(delete_checkpoint, *request, job);
  }
  grpc::Status ListQueue(grpc::ServerContext*, const v1::ListQueueRequest* request,
                         v1::ListQueueResponse* response) override {
    return Answer(queue, *request, response);
  }
  grpc::Status ListNamespaces(grpc::ServerContext*, const v1::ListNamespacesRequest* request,
                              v1::ListNamespacesResponse* response) override {
    return Answer(namespaces, *request, response);
  }
  grpc::Status UpdateNamespace(grpc::ServerContext*, const v1::UpdateNamespaceRequest* request,
                               v1::Namespace* response) override {
    return Answer(set_namespace, *request, response);
  }
  grpc::Status DeleteNamespace(grpc::ServerContext*, const v1::DeleteNamespaceRequest*,
                               v1::DeleteNamespaceResponse*) override {
    return grpc::Status::OK;
  }
  grpc::Status DrainNode(grpc::ServerContext*, const v1::DrainNodeRequest* request,
                         v1::Node* response) override {
    return Answer(drain, *request, response);
  }
  grpc::Status StreamSteps(grpc::ServerContext*, const v1::StreamStepsRequest* request,
                           grpc::ServerWriter<v1::StepReport>* writer) override {
    return Answer(steps, *request, writer);
  }
  grpc::Status StreamLogs(grpc::ServerContext*, const v1::StreamLogsRequest* request,
                          grpc::ServerWriter<v1::LogChunk>* writer) override {
    return Answer(logs, *request, writer);
  }
  grpc::Status WatchEvents(grpc::ServerContext*, const v1::WatchEventsRequest* request,
                           grpc::ServerWriter<v1::JobEvent>* writer) override {
    return Answer(events, *request, writer);
  }
  grpc::Status ListNodes(grpc::ServerContext*, const v1::ListNodesRequest* request,
                         v1::ListNodesResponse* response) override {
    if (nodes) return nodes(*request, response);
    v1::Node& node = *response->add_nodes();
    node.set_name("node-1");
    node.set_state(v1::NODE_STATE_READY);
    return grpc::Status::OK;
  }
  grpc::Status GetVersion(grpc::ServerContext*, const v1::GetVersionRequest*,
                          v1::GetVersionResponse* response) override {
    response->set_version("9.9.9");
    return grpc::Status::OK;
  }

  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace mega::cli
