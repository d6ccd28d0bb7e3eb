// JobService.SubmitJob: validate off the loop, then let the core take it. The answer leaves when
// the job is durable; the same request_id gives the same job, however often it comes.
#include "base/printable.h"
#include "coordinator/service/job_names.h"
#include "coordinator/service/random_id.h"
#include "coordinator/service/rpc/ask_core.h"
#include "coordinator/service/rpc/rpcs.h"
#include "coordinator/service/submit_check.h"
#include "coordinator/service/unary.h"

namespace mega::service {
namespace {

constexpr size_t kMostRequestIdBytes = 128;

void Submit(const Shell& shell, const v1::SubmitJobRequest& request, v1::Job& job,
            grpc::ServerUnaryReactor* reactor) {
  CheckedSpec checked;
  if (grpc::Status status = CheckSpec(request.metadata(), request.spec(), Purpose::kRun, &checked);
      !status.ok()) {
    return reactor->Finish(std::move(status));
  }
  if (request.validate_only()) {
    // No uid: there is no such job. Its name is what would find it.
    job.set_name(fmt::format("namespaces/{}/jobs/{}", checked.metadata.namespace_(),
                             checked.metadata.name()));
    *job.mutable_metadata() = checked.metadata;
    *job.mutable_spec() = request.spec();
    *job.mutable_resolved_spec() = checked.resolved;
    return reactor->Finish(grpc::Status::OK);
  }
  v1::CoreEvent event;
  v1::CoreSubmit& submit = *event.mutable_submit();
  submit.set_uid(NewUid());
  submit.set_request_id(request.request_id());
  *submit.mutable_metadata() = std::move(checked.metadata);
  *submit.mutable_spec() = request.spec();
  *submit.mutable_resolved_spec() = std::move(checked.resolved);
  submit.DiscardUnknownFields();  // it is kept
  AskCore(shell, std::move(event), reactor, job);
}

}  // namespace

grpc::ServerUnaryReactor* SubmitJob(const Shell& shell, const Caller& caller, Context* context,
                                    const v1::SubmitJobRequest& request, v1::Job& job) {
  if (grpc::Status status = caller.CheckIn(NamespaceOf(request.metadata())); !status.ok()) {
    return Done(context, std::move(status));
  }
  if (!request.validate_only() &&
      (request.request_id().empty() || request.request_id().size() > kMostRequestIdBytes)) {
    return Done(context,
                FieldInvalid("REQUEST_ID_INVALID", "request_id",
                             fmt::format("request_id has {} bytes; give a UUID of your choice (1 "
                                         "to {}), the same again when you retry",
                                         request.request_id().size(), kMostRequestIdBytes)));
  }
  if (PrintableLine(request.request_id()) != request.request_id()) {
    return Done(context, FieldInvalid("REQUEST_ID_INVALID", "request_id",
                                      fmt::format("request_id '{}' holds a control character; give "
                                                  "a UUID of your choice",
                                                  PrintableLine(request.request_id()))));
  }
  if (grpc::Status status = CheckSpecSize(request.spec()); !status.ok()) {
    return Done(context, std::move(status));
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  // Shell holds references only, so the copy is as good as the original.
  if (!shell.checks.Post(
          [shell, &request, &job, reactor] { Submit(shell, request, job, reactor); })) {
    reactor->Finish(TooManyChecks());
  }
  return reactor;
}

}  // namespace mega::service
