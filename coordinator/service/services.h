// The three gRPC services: each method hands over to its file in rpc/.
#pragma once

#include "coordinator/service/rpc/rpcs.h"

namespace mega::service {

class JobServiceImpl final : public v1::JobService::CallbackService {
 public:
  explicit JobServiceImpl(const Shell& shell) : shell_(shell) {}

  grpc::ServerUnaryReactor* SubmitJob(Context* context, const v1::SubmitJobRequest* request,
                                      v1::Job* job) override {
    return service::SubmitJob(shell_, context, *request, *job);
  }
  grpc::ServerUnaryReactor* GetJob(Context* context, const v1::GetJobRequest* request,
                                   v1::Job* job) override {
    return service::GetJob(shell_, context, *request, *job);
  }
  grpc::ServerUnaryReactor* ListJobs(Context* context, const v1::ListJobsRequest* request,
                                     v1::ListJobsResponse* response) override {
    return service::ListJobs(shell_, context, *request, *response);
  }
  grpc::ServerUnaryReactor* CancelJob(Context* context, const v1::CancelJobRequest* request,
                                      v1::Job* job) override {
    return service::CancelJob(shell_, context, *request, *job);
  }
  grpc::ServerUnaryReactor* PlanJob(Context* context, const v1::PlanJobRequest* request,
                                    v1::PlanJobResponse* response) override {
    return service::PlanJob(shell_, context, *request, *response);
  }
  grpc::ServerWriteReactor<v1::JobEvent>* WatchEvents(
      Context* context, const v1::WatchEventsRequest* request) override {
    return service::WatchEvents(shell_, *request);
  }
  grpc::ServerWriteReactor<v1::StepReport>* StreamSteps(
      Context* context, const v1::StreamStepsRequest* request) override {
    return service::StreamSteps(shell_, *request);
  }
  grpc::ServerWriteReactor<v1::LogChunk>* StreamLogs(
      Context* context, const v1::StreamLogsRequest* request) override {
    return service::StreamLogs(shell_, *request);
  }
  grpc::ServerUnaryReactor* PauseJob(Context* context, const v1::PauseJobRequest* request,
                                     v1::Job* response) override {
    return service::PauseJob(shell_, context, *request, *response);
  }
  grpc::ServerUnaryReactor* ResumeJob(Context* context, const v1::ResumeJobRequest* request,
                                      v1::Job* response) override {
    return service::ResumeJob(shell_, context, *request, *response);
  }
  grpc::ServerUnaryReactor* RestartJob(Context* context, const v1::RestartJobRequest* request,
                                       v1::Job* response) override {
    return service::RestartJob(shell_, context, *request, *response);
  }
  grpc::ServerUnaryReactor* ScaleJob(Context* context, const v1::ScaleJobRequest* request,
                                     v1::Job* response) override {
    return service::ScaleJob(shell_, context, *request, *response);
  }
  grpc::ServerUnaryReactor* SaveCheckpoint(Context* context,
                                           const v1::SaveCheckpointRequest* request,
                                           v1::Job* response) override {
    return service::SaveCheckpoint(shell_, context, *request, *response);
  }
  grpc::ServerUnaryReactor* PinCheckpoint(Context* context, const v1::PinCheckpointRequest* request,
                                          v1::Manifest* response) override {
    return service::PinCheckpoint(shell_, context, *request, *response);
  }
  grpc::ServerUnaryReactor* DeleteCheckpoint(Context* context,
                                             const v1::DeleteCheckpointRequest* request,
                                             v1::Job* response) override {
    return service::DeleteCheckpoint(shell_, context, *request, *response);
  }

 private:
  const Shell shell_;
};

class ClusterServiceImpl final : public v1::ClusterService::CallbackService {
 public:
  explicit ClusterServiceImpl(const Shell& shell) : shell_(shell) {}

  grpc::ServerUnaryReactor* GetNode(Context* context, const v1::GetNodeRequest* request,
                                    v1::Node* node) override {
    return service::GetNode(shell_, context, *request, *node);
  }
  grpc::ServerUnaryReactor* ListNodes(Context* context, const v1::ListNodesRequest* request,
                                      v1::ListNodesResponse* response) override {
    return service::ListNodes(shell_, context, *request, *response);
  }
  grpc::ServerUnaryReactor* GetVersion(Context* context, const v1::GetVersionRequest* request,
                                       v1::GetVersionResponse* response) override {
    return service::GetVersion(shell_, context, *response);
  }
  grpc::ServerUnaryReactor* CordonNode(Context* context, const v1::CordonNodeRequest* request,
                                       v1::Node* response) override {
    return service::CordonNode(shell_, context, *request, *response);
  }
  grpc::ServerUnaryReactor* UncordonNode(Context* context, const v1::UncordonNodeRequest* request,
                                         v1::Node* response) override {
    return service::UncordonNode(shell_, context, *request, *response);
  }
  grpc::ServerUnaryReactor* DrainNode(Context* context, const v1::DrainNodeRequest* request,
                                      v1::Node* response) override {
    return service::DrainNode(shell_, context, *request, *response);
  }
  grpc::ServerUnaryReactor* UpdateNamespace(Context* context,
                                            const v1::UpdateNamespaceRequest* request,
                                            v1::Namespace* response) override {
    return service::UpdateNamespace(shell_, context, *request, *response);
  }
  grpc::ServerUnaryReactor* DeleteNamespace(Context* context,
                                            const v1::DeleteNamespaceRequest* request,
                                            v1::DeleteNamespaceResponse* response) override {
    return service::DeleteNamespace(shell_, context, *request, *response);
  }

 private:
  const Shell shell_;
};

class WorkerServiceImpl final : public v1::WorkerService::CallbackService {
 public:
  explicit WorkerServiceImpl(const Shell& shell) : shell_(shell) {}

  grpc::ServerBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage>* Session(
      Context* context) override {
    return service::Session(shell_, context);
  }
  grpc::ServerReadReactor<v1::StepReport>* PushSteps(Context* context,
                                                     v1::PushStepsResponse* response) override {
    return service::PushSteps(shell_, *response);
  }
  grpc::ServerReadReactor<v1::LogChunk>* PushLogs(Context* context,
                                                  v1::PushLogsResponse* response) override {
    return service::PushLogs(shell_, *response);
  }

 private:
  const Shell shell_;
};

}  // namespace mega::service
