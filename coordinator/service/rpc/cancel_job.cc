// JobService.CancelJob: answers when the wish is durable, not when the ranks have ended.
#include "coordinator/service/job_names.h"
#include "coordinator/service/rpc/rpcs.h"
#include "coordinator/service/unary.h"

namespace mega::service {

grpc::ServerUnaryReactor* CancelJob(const Shell& shell, Context* context,
                                    const v1::CancelJobRequest& request, v1::Job& job) {
  std::shared_ptr<const v1::Job> found;
  if (grpc::Status status = FindJob(shell.reads, request.name(), &found); !status.ok()) {
    return Done(context, std::move(status));
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  v1::CoreEvent event;
  event.mutable_cancel()->set_uid(found->uid());
  const bool taken = shell.loop.Call(std::move(event), [reactor, &job](const v1::ReplyCall& reply) {
    reactor->Finish(FromReply(reply, job));
  });
  if (!taken) {
    reactor->Finish(Overloaded("the coordinator has too many calls waiting", absl::Seconds(1)));
  }
  return reactor;
}

}  // namespace mega::service
