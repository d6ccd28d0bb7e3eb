// One function an RPC, one file a function.
#pragma once

#include "coordinator/service/access.h"
#include "coordinator/service/shell.h"
#include "grpcpp/grpcpp.h"
#include "mega/v1/cluster.grpc.pb.h"
#include "mega/v1/job.grpc.pb.h"
#include "mega/v1/worker.grpc.pb.h"

namespace mega::service {

using Context = grpc::CallbackServerContext;

grpc::ServerUnaryReactor* SubmitJob(const Shell&, const Caller&, Context*,
                                    const v1::SubmitJobRequest&, v1::Job&);
grpc::ServerUnaryReactor* GetJob(const Shell&, const Caller&, Context*, const v1::GetJobRequest&,
                                 v1::Job&);
grpc::ServerUnaryReactor* ListJobs(const Shell&, const Caller&, Context*,
                                   const v1::ListJobsRequest&, v1::ListJobsResponse&);
grpc::ServerUnaryReactor* ListQueue(const Shell&, const Caller&, Context*,
                                    const v1::ListQueueRequest&, v1::ListQueueResponse&);
grpc::ServerUnaryReactor* CancelJob(const Shell&, const Caller&, Context*,
                                    const v1::CancelJobRequest&, v1::Job&);
grpc::ServerUnaryReactor* PlanJob(const Shell&, const Caller&, Context*, const v1::PlanJobRequest&,
                                  v1::PlanJobResponse&);
grpc::ServerWriteReactor<v1::JobEvent>* WatchEvents(const Shell&, const Caller&,
                                                    const v1::WatchEventsRequest&);
grpc::ServerWriteReactor<v1::StepReport>* StreamSteps(const Shell&, const Caller&,
                                                      const v1::StreamStepsRequest&);
grpc::ServerWriteReactor<v1::LogChunk>* StreamLogs(const Shell&, const Caller&,
                                                   const v1::StreamLogsRequest&);

grpc::ServerUnaryReactor* GetNode(const Shell&, Context*, const v1::GetNodeRequest&, v1::Node&);
grpc::ServerUnaryReactor* ListNodes(const Shell&, Context*, const v1::ListNodesRequest&,
                                    v1::ListNodesResponse&);
grpc::ServerUnaryReactor* ListNamespaces(const Shell&, const Caller&, Context*,
                                         const v1::ListNamespacesRequest&,
                                         v1::ListNamespacesResponse&);
grpc::ServerUnaryReactor* GetVersion(const Shell&, Context*, v1::GetVersionResponse&);
grpc::ServerUnaryReactor* WhoAmI(const Shell&, const Caller&, Context*, v1::WhoAmIResponse&);

grpc::ServerBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage>* Session(const Shell&, Context*);
grpc::ServerReadReactor<v1::StepReport>* PushSteps(const Shell&, Context*, v1::PushStepsResponse&);
grpc::ServerReadReactor<v1::LogChunk>* PushLogs(const Shell&, v1::PushLogsResponse&);

// requests.cc
grpc::ServerUnaryReactor* PauseJob(const Shell&, const Caller&, Context*,
                                   const v1::PauseJobRequest&, v1::Job&);
grpc::ServerUnaryReactor* ResumeJob(const Shell&, const Caller&, Context*,
                                    const v1::ResumeJobRequest&, v1::Job&);
grpc::ServerUnaryReactor* RestartJob(const Shell&, const Caller&, Context*,
                                     const v1::RestartJobRequest&, v1::Job&);
grpc::ServerUnaryReactor* ScaleJob(const Shell&, const Caller&, Context*,
                                   const v1::ScaleJobRequest&, v1::Job&);
grpc::ServerUnaryReactor* SaveCheckpoint(const Shell&, const Caller&, Context*,
                                         const v1::SaveCheckpointRequest&, v1::Job&);
grpc::ServerUnaryReactor* PinCheckpoint(const Shell&, const Caller&, Context*,
                                        const v1::PinCheckpointRequest&, v1::Manifest&);
grpc::ServerUnaryReactor* DeleteCheckpoint(const Shell&, const Caller&, Context*,
                                           const v1::DeleteCheckpointRequest&, v1::Job&);
grpc::ServerUnaryReactor* CordonNode(const Shell&, Context*, const v1::CordonNodeRequest&,
                                     v1::Node&);
grpc::ServerUnaryReactor* UncordonNode(const Shell&, Context*, const v1::UncordonNodeRequest&,
                                       v1::Node&);
grpc::ServerUnaryReactor* DrainNode(const Shell&, Context*, const v1::DrainNodeRequest&, v1::Node&);
grpc::ServerUnaryReactor* UpdateNamespace(const Shell&, Context*, const v1::UpdateNamespaceRequest&,
                                          v1::Namespace&);
grpc::ServerUnaryReactor* DeleteNamespace(const Shell&, Context*, const v1::DeleteNamespaceRequest&,
                                          v1::DeleteNamespaceResponse&);

}  // namespace mega::service
