// JobService.CancelJob: answers when the wish is durable, not when the ranks have ended.
#include "coordinator/service/job_names.h"
#include "coordinator/service/rpc/ask_core.h"
#include "coordinator/service/rpc/rpcs.h"
#include "coordinator/service/unary.h"

namespace mega::service {

grpc::ServerUnaryReactor* CancelJob(const Shell& shell, const Caller& caller, Context* context,
                                    const v1::CancelJobRequest& request, v1::Job& job) {
  std::shared_ptr<const v1::Job> found;
  if (grpc::Status status = FindJob(shell.reads, caller, request.name(), &found); !status.ok()) {
    return Done(context, std::move(status));
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  v1::CoreEvent event;
  event.mutable_cancel()->set_uid(found->uid());
  AskCore(shell, std::move(event), reactor, job);
  return reactor;
}

}  // namespace mega::service
