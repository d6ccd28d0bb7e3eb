// The RPCs that ask the core for something and give back what became of it: pause, scale, cordon,
// drain … Each answers when the core's decision is durable, not when all that follows has happened.
#include "coordinator/service/job_names.h"
#include "coordinator/service/rpc/rpcs.h"
#include "coordinator/service/unary.h"

namespace mega::service {
namespace {

template <typename Response>
grpc::ServerUnaryReactor* Ask(const Shell& shell, Context* context, v1::CoreRequest request,
                              Response& response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  v1::CoreEvent event;
  *event.mutable_request() = std::move(request);
  const bool taken =
      shell.loop.Call(std::move(event), [reactor, &response](const v1::ReplyCall& reply) {
        reactor->Finish(FromReply(reply, response));
      });
  if (!taken) {
    reactor->Finish(Overloaded("the coordinator has too many calls waiting", absl::Seconds(1)));
  }
  return reactor;
}

template <typename Response>
grpc::ServerUnaryReactor* AskAboutJob(const Shell& shell, Context* context, std::string_view name,
                                      v1::CoreRequest request, Response& response) {
  std::shared_ptr<const v1::Job> found;
  if (grpc::Status status = FindJob(shell.reads, name, &found); !status.ok()) {
    return Done(context, std::move(status));
  }
  request.set_uid(found->uid());
  return Ask(shell, context, std::move(request), response);
}

// "nodes/n1" and "n1" are the same.
std::string NodeId(std::string_view name) {
  constexpr std::string_view kNodes = "nodes/";
  return std::string(name.starts_with(kNodes) ? name.substr(kNodes.size()) : name);
}

}  // namespace

grpc::ServerUnaryReactor* PauseJob(const Shell& shell, Context* context,
                                   const v1::PauseJobRequest& request, v1::Job& job) {
  v1::CoreRequest asked;
  *asked.mutable_pause_job() = request;
  return AskAboutJob(shell, context, request.name(), std::move(asked), job);
}

grpc::ServerUnaryReactor* ResumeJob(const Shell& shell, Context* context,
                                    const v1::ResumeJobRequest& request, v1::Job& job) {
  v1::CoreRequest asked;
  *asked.mutable_resume_job() = request;
  return AskAboutJob(shell, context, request.name(), std::move(asked), job);
}

grpc::ServerUnaryReactor* RestartJob(const Shell& shell, Context* context,
                                     const v1::RestartJobRequest& request, v1::Job& job) {
  v1::CoreRequest asked;
  *asked.mutable_restart_job() = request;
  return AskAboutJob(shell, context, request.name(), std::move(asked), job);
}

grpc::ServerUnaryReactor* ScaleJob(const Shell& shell, Context* context,
                                   const v1::ScaleJobRequest& request, v1::Job& job) {
  v1::CoreRequest asked;
  *asked.mutable_scale_job() = request;
  return AskAboutJob(shell, context, request.name(), std::move(asked), job);
}

grpc::ServerUnaryReactor* SaveCheckpoint(const Shell& shell, Context* context,
                                         const v1::SaveCheckpointRequest& request, v1::Job& job) {
  v1::CoreRequest asked;
  *asked.mutable_save_checkpoint() = request;
  return AskAboutJob(shell, context, request.name(), std::move(asked), job);
}

grpc::ServerUnaryReactor* PinCheckpoint(const Shell& shell, Context* context,
                                        const v1::PinCheckpointRequest& request,
                                        v1::Manifest& manifest) {
  v1::CoreRequest asked;
  *asked.mutable_pin_checkpoint() = request;
  return AskAboutJob(shell, context, request.name(), std::move(asked), manifest);
}

grpc::ServerUnaryReactor* DeleteCheckpoint(const Shell& shell, Context* context,
                                           const v1::DeleteCheckpointRequest& request,
                                           v1::Job& job) {
  v1::CoreRequest asked;
  *asked.mutable_delete_checkpoint() = request;
  return AskAboutJob(shell, context, request.name(), std::move(asked), job);
}

grpc::ServerUnaryReactor* CordonNode(const Shell& shell, Context* context,
                                     const v1::CordonNodeRequest& request, v1::Node& node) {
  v1::CoreRequest asked;
  *asked.mutable_cordon_node() = request;
  asked.mutable_cordon_node()->set_name(NodeId(request.name()));
  return Ask(shell, context, std::move(asked), node);
}

grpc::ServerUnaryReactor* UncordonNode(const Shell& shell, Context* context,
                                       const v1::UncordonNodeRequest& request, v1::Node& node) {
  v1::CoreRequest asked;
  asked.mutable_uncordon_node()->set_name(NodeId(request.name()));
  return Ask(shell, context, std::move(asked), node);
}

grpc::ServerUnaryReactor* DrainNode(const Shell& shell, Context* context,
                                    const v1::DrainNodeRequest& request, v1::Node& node) {
  v1::CoreRequest asked;
  *asked.mutable_drain_node() = request;
  asked.mutable_drain_node()->set_name(NodeId(request.name()));
  return Ask(shell, context, std::move(asked), node);
}

grpc::ServerUnaryReactor* UpdateNamespace(const Shell& shell, Context* context,
                                          const v1::UpdateNamespaceRequest& request,
                                          v1::Namespace& limits) {
  v1::CoreRequest asked;
  *asked.mutable_update_namespace() = request;
  return Ask(shell, context, std::move(asked), limits);
}

grpc::ServerUnaryReactor* DeleteNamespace(const Shell& shell, Context* context,
                                          const v1::DeleteNamespaceRequest& request,
                                          v1::DeleteNamespaceResponse& response) {
  v1::CoreRequest asked;
  *asked.mutable_delete_namespace() = request;
  return Ask(shell, context, std::move(asked), response);
}

}  // namespace mega::service
