// The three gRPC services: each method hands over to its file in rpc/, once the state is loaded.
#pragma once

#include "coordinator/service/gate.h"
#include "coordinator/service/rpc/rpcs.h"

namespace mega::service {

class JobServiceImpl final : public v1::JobService::CallbackService {
 public:
  explicit JobServiceImpl(const Gate& gate) : gate_(gate) {}

  grpc::ServerUnaryReactor* SubmitJob(Context* context, const v1::SubmitJobRequest* request,
                                      v1::Job* job) override {
    return gate_.Call(PermissionOf("JobService.SubmitJob"), service::SubmitJob, context, *request,
                      *job);
  }
  grpc::ServerUnaryReactor* GetJob(Context* context, const v1::GetJobRequest* request,
                                   v1::Job* job) override {
    return gate_.Call(PermissionOf("JobService.GetJob"), service::GetJob, context, *request, *job);
  }
  grpc::ServerUnaryReactor* ListJobs(Context* context, const v1::ListJobsRequest* request,
                                     v1::ListJobsResponse* response) override {
    return gate_.Call(PermissionOf("JobService.ListJobs"), service::ListJobs, context, *request,
                      *response);
  }
  grpc::ServerUnaryReactor* ListQueue(Context* context, const v1::ListQueueRequest* request,
                                      v1::ListQueueResponse* response) override {
    return gate_.Call(PermissionOf("JobService.ListQueue"), service::ListQueue, context, *request,
                      *response);
  }
  grpc::ServerUnaryReactor* CancelJob(Context* context, const v1::CancelJobRequest* request,
                                      v1::Job* job) override {
    return gate_.Call(PermissionOf("JobService.CancelJob"), service::CancelJob, context, *request,
                      *job);
  }
  grpc::ServerUnaryReactor* PlanJob(Context* context, const v1::PlanJobRequest* request,
                                    v1::PlanJobResponse* response) override {
    return gate_.Call(PermissionOf("JobService.PlanJob"), service::PlanJob, context, *request,
                      *response);
  }
  grpc::ServerWriteReactor<v1::JobEvent>* WatchEvents(
      Context* context, const v1::WatchEventsRequest* request) override {
    return gate_.Call(PermissionOf("JobService.WatchEvents"), service::WatchEvents, context,
                      *request);
  }
  grpc::ServerWriteReactor<v1::StepReport>* StreamSteps(
      Context* context, const v1::StreamStepsRequest* request) override {
    return gate_.Call(PermissionOf("JobService.StreamSteps"), service::StreamSteps, context,
                      *request);
  }
  grpc::ServerWriteReactor<v1::LogChunk>* StreamLogs(
      Context* context, const v1::StreamLogsRequest* request) override {
    return gate_.Call(PermissionOf("JobService.StreamLogs"), service::StreamLogs, context,
                      *request);
  }
  grpc::ServerUnaryReactor* PauseJob(Context* context, const v1::PauseJobRequest* request,
                                     v1::Job* response) override {
    return gate_.Call(PermissionOf("JobService.PauseJob"), service::PauseJob, context, *request,
                      *response);
  }
  grpc::ServerUnaryReactor* ResumeJob(Context* context, const v1::ResumeJobRequest* request,
                                      v1::Job* response) override {
    return gate_.Call(PermissionOf("JobService.ResumeJob"), service::ResumeJob, context, *request,
                      *response);
  }
  grpc::ServerUnaryReactor* RestartJob(Context* context, const v1::RestartJobRequest* request,
                                       v1::Job* response) override {
    return gate_.Call(PermissionOf("JobService.RestartJob"), service::RestartJob, context, *request,
                      *response);
  }
  grpc::ServerUnaryReactor* ScaleJob(Context* context, const v1::ScaleJobRequest* request,
                                     v1::Job* response) override {
    return gate_.Call(PermissionOf("JobService.ScaleJob"), service::ScaleJob, context, *request,
                      *response);
  }
  grpc::ServerUnaryReactor* SaveCheckpoint(Context* context,
                                           const v1::SaveCheckpointRequest* request,
                                           v1::Job* response) override {
    return gate_.Call(PermissionOf("JobService.SaveCheckpoint"), service::SaveCheckpoint, context,
                      *request, *response);
  }
  grpc::ServerUnaryReactor* PinCheckpoint(Context* context, const v1::PinCheckpointRequest* request,
                                          v1::Manifest* response) override {
    return gate_.Call(PermissionOf("JobService.PinCheckpoint"), service::PinCheckpoint, context,
                      *request, *response);
  }
  grpc::ServerUnaryReactor* DeleteCheckpoint(Context* context,
                                             const v1::DeleteCheckpointRequest* request,
                                             v1::Job* response) override {
    return gate_.Call(PermissionOf("JobService.DeleteCheckpoint"), service::DeleteCheckpoint,
                      context, *request, *response);
  }

 private:
  const Gate& gate_;
};

inline grpc::ServerUnaryReactor* NoAuditRecords(const Shell&, Context* context) {
  return Done(context, NotImplemented("ListAuditRecords"));
}
inline grpc::ServerWriteReactor<v1::CaptureJournalResponse>* NoJournal(const Shell&) {
  return new FailedStream<v1::CaptureJournalResponse>(NotImplemented("CaptureJournal"));
}

class ClusterServiceImpl final : public v1::ClusterService::CallbackService {
 public:
  explicit ClusterServiceImpl(const Gate& gate) : gate_(gate) {}

  grpc::ServerUnaryReactor* GetNode(Context* context, const v1::GetNodeRequest* request,
                                    v1::Node* node) override {
    return gate_.Call(PermissionOf("ClusterService.GetNode"), service::GetNode, context, *request,
                      *node);
  }
  grpc::ServerUnaryReactor* ListNodes(Context* context, const v1::ListNodesRequest* request,
                                      v1::ListNodesResponse* response) override {
    return gate_.Call(PermissionOf("ClusterService.ListNodes"), service::ListNodes, context,
                      *request, *response);
  }
  grpc::ServerUnaryReactor* GetVersion(Context* context, const v1::GetVersionRequest* request,
                                       v1::GetVersionResponse* response) override {
    return gate_.Call(PermissionOf("ClusterService.GetVersion"), service::GetVersion, context,
                      *response);
  }
  grpc::ServerUnaryReactor* CordonNode(Context* context, const v1::CordonNodeRequest* request,
                                       v1::Node* response) override {
    return gate_.Call(PermissionOf("ClusterService.CordonNode"), service::CordonNode, context,
                      *request, *response);
  }
  grpc::ServerUnaryReactor* UncordonNode(Context* context, const v1::UncordonNodeRequest* request,
                                         v1::Node* response) override {
    return gate_.Call(PermissionOf("ClusterService.UncordonNode"), service::UncordonNode, context,
                      *request, *response);
  }
  grpc::ServerUnaryReactor* DrainNode(Context* context, const v1::DrainNodeRequest* request,
                                      v1::Node* response) override {
    return gate_.Call(PermissionOf("ClusterService.DrainNode"), service::DrainNode, context,
                      *request, *response);
  }
  grpc::ServerUnaryReactor* ListNamespaces(Context* context,
                                           const v1::ListNamespacesRequest* request,
                                           v1::ListNamespacesResponse* response) override {
    return gate_.Call(PermissionOf("ClusterService.ListNamespaces"), service::ListNamespaces,
                      context, *request, *response);
  }
  grpc::ServerUnaryReactor* UpdateNamespace(Context* context,
                                            const v1::UpdateNamespaceRequest* request,
                                            v1::Namespace* response) override {
    return gate_.Call(PermissionOf("ClusterService.UpdateNamespace"), service::UpdateNamespace,
                      context, *request, *response);
  }
  grpc::ServerUnaryReactor* DeleteNamespace(Context* context,
                                            const v1::DeleteNamespaceRequest* request,
                                            v1::DeleteNamespaceResponse* response) override {
    return gate_.Call(PermissionOf("ClusterService.DeleteNamespace"), service::DeleteNamespace,
                      context, *request, *response);
  }

  grpc::ServerUnaryReactor* WhoAmI(Context* context, const v1::WhoAmIRequest* /*request*/,
                                   v1::WhoAmIResponse* response) override {
    return gate_.Call(PermissionOf("ClusterService.WhoAmI"), service::WhoAmI, context, *response);
  }

  // Of later releases.
  grpc::ServerUnaryReactor* ListAuditRecords(Context* context,
                                             const v1::ListAuditRecordsRequest* /*request*/,
                                             v1::ListAuditRecordsResponse* /*response*/) override {
    return gate_.Call(PermissionOf("ClusterService.ListAuditRecords"), &NoAuditRecords, context);
  }
  grpc::ServerWriteReactor<v1::CaptureJournalResponse>* CaptureJournal(
      Context* context, const v1::CaptureJournalRequest* /*request*/) override {
    return gate_.Call(PermissionOf("ClusterService.CaptureJournal"), &NoJournal, context);
  }

 private:
  const Gate& gate_;
};

class WorkerServiceImpl final : public v1::WorkerService::CallbackService {
 public:
  explicit WorkerServiceImpl(const Gate& gate) : gate_(gate) {}

  grpc::ServerBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage>* Session(
      Context* context) override {
    return gate_.Call(PermissionOf("WorkerService.Session"), service::Session, context);
  }
  grpc::ServerReadReactor<v1::StepReport>* PushSteps(Context* context,
                                                     v1::PushStepsResponse* response) override {
    return gate_.Call(PermissionOf("WorkerService.PushSteps"), service::PushSteps, context,
                      *response);
  }
  grpc::ServerReadReactor<v1::LogChunk>* PushLogs(Context* context,
                                                  v1::PushLogsResponse* response) override {
    return gate_.Call(PermissionOf("WorkerService.PushLogs"), service::PushLogs, context,
                      *response);
  }

 private:
  const Gate& gate_;
};

}  // namespace mega::service
