#include "coordinator/service/job_names.h"
#include "coordinator/service/rpc/rpcs.h"
#include "coordinator/service/unary.h"

namespace mega::service {

grpc::ServerUnaryReactor* GetJob(const Shell& shell, const Caller& caller, Context* context,
                                 const v1::GetJobRequest& request, v1::Job& job) {
  std::shared_ptr<const v1::Job> found;
  if (grpc::Status status = FindJob(shell.reads, caller, request.name(), &found); !status.ok()) {
    return Done(context, std::move(status));
  }
  std::optional<v1::Job> view = shell.reads.Job(found->uid());
  if (!view) return Done(context, JobGone(found->uid()));
  job = *std::move(view);
  return Done(context, grpc::Status::OK);
}

}  // namespace mega::service
