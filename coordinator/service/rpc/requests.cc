// The RPCs that ask the core for something and give back what became of it: pause, scale, cordon,
// drain … Each answers when the core's decision is durable, not when all that follows has happened.
#include "coordinator/service/job_names.h"
#include "coordinator/service/rpc/ask_core.h"
#include "coordinator/service/rpc/rpcs.h"

namespace mega::service {
namespace {

using v1::CoreRequest;

// Where a CoreRequest holds a request: CoreRequest::mutable_pause_job.
template <typename Request>
using Place = Request* (CoreRequest::*)();

template <typename Request, typename Response>
grpc::ServerUnaryReactor* Ask(const Shell& shell, Context* context, const Request& request,
                              Place<Request> place, Response& response,
                              const core::JobUid& uid = "") {
  v1::CoreEvent event;
  CoreRequest& asked = *event.mutable_request();
  *(asked.*place)() = request;
  asked.DiscardUnknownFields();  // some of it is kept
  asked.set_uid(uid);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  AskCore(shell, std::move(event), reactor, response);
  return reactor;
}

template <typename Request, typename Response>
grpc::ServerUnaryReactor* AskAboutJob(const Shell& shell, const Caller& caller, Context* context,
                                      const Request& request, Place<Request> place,
                                      Response& response) {
  std::shared_ptr<const v1::Job> found;
  if (grpc::Status status = FindJob(shell.reads, caller, request.name(), &found); !status.ok()) {
    return Done(context, std::move(status));
  }
  return Ask(shell, context, request, place, response, found->uid());
}

// "nodes/n1" and "n1" are the same.
template <typename Request>
grpc::ServerUnaryReactor* AskAboutNode(const Shell& shell, Context* context, Request request,
                                       Place<Request> place, v1::Node& node) {
  constexpr std::string_view kNodes = "nodes/";
  if (request.name().starts_with(kNodes)) request.mutable_name()->erase(0, kNodes.size());
  return Ask(shell, context, request, place, node);
}

}  // namespace

grpc::ServerUnaryReactor* PauseJob(const Shell& shell, const Caller& caller, Context* context,
                                   const v1::PauseJobRequest& request, v1::Job& response) {
  return AskAboutJob(shell, caller, context, request, &CoreRequest::mutable_pause_job, response);
}

grpc::ServerUnaryReactor* ResumeJob(const Shell& shell, const Caller& caller, Context* context,
                                    const v1::ResumeJobRequest& request, v1::Job& response) {
  return AskAboutJob(shell, caller, context, request, &CoreRequest::mutable_resume_job, response);
}

grpc::ServerUnaryReactor* RestartJob(const Shell& shell, const Caller& caller, Context* context,
                                     const v1::RestartJobRequest& request, v1::Job& response) {
  return AskAboutJob(shell, caller, context, request, &CoreRequest::mutable_restart_job, response);
}

grpc::ServerUnaryReactor* ScaleJob(const Shell& shell, const Caller& caller, Context* context,
                                   const v1::ScaleJobRequest& request, v1::Job& response) {
  return AskAboutJob(shell, caller, context, request, &CoreRequest::mutable_scale_job, response);
}

grpc::ServerUnaryReactor* SaveCheckpoint(const Shell& shell, const Caller& caller, Context* context,
                                         const v1::SaveCheckpointRequest& request,
                                         v1::Job& response) {
  return AskAboutJob(shell, caller, context, request, &CoreRequest::mutable_save_checkpoint,
                     response);
}

grpc::ServerUnaryReactor* PinCheckpoint(const Shell& shell, const Caller& caller, Context* context,
                                        const v1::PinCheckpointRequest& request,
                                        v1::Manifest& response) {
  return AskAboutJob(shell, caller, context, request, &CoreRequest::mutable_pin_checkpoint,
                     response);
}

grpc::ServerUnaryReactor* DeleteCheckpoint(const Shell& shell, const Caller& caller,
                                           Context* context,
                                           const v1::DeleteCheckpointRequest& request,
                                           v1::Job& response) {
  return AskAboutJob(shell, caller, context, request, &CoreRequest::mutable_delete_checkpoint,
                     response);
}

grpc::ServerUnaryReactor* CordonNode(const Shell& shell, Context* context,
                                     const v1::CordonNodeRequest& request, v1::Node& response) {
  return AskAboutNode(shell, context, request, &CoreRequest::mutable_cordon_node, response);
}

grpc::ServerUnaryReactor* UncordonNode(const Shell& shell, Context* context,
                                       const v1::UncordonNodeRequest& request, v1::Node& response) {
  return AskAboutNode(shell, context, request, &CoreRequest::mutable_uncordon_node, response);
}

grpc::ServerUnaryReactor* DrainNode(const Shell& shell, Context* context,
                                    const v1::DrainNodeRequest& request, v1::Node& response) {
  return AskAboutNode(shell, context, request, &CoreRequest::mutable_drain_node, response);
}

grpc::ServerUnaryReactor* UpdateNamespace(const Shell& shell, Context* context,
                                          const v1::UpdateNamespaceRequest& request,
                                          v1::Namespace& response) {
  return Ask(shell, context, request, &CoreRequest::mutable_update_namespace, response);
}

grpc::ServerUnaryReactor* DeleteNamespace(const Shell& shell, Context* context,
                                          const v1::DeleteNamespaceRequest& request,
                                          v1::DeleteNamespaceResponse& response) {
  return Ask(shell, context, request, &CoreRequest::mutable_delete_namespace, response);
}

}  // namespace mega::service
