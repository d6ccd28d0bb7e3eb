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
