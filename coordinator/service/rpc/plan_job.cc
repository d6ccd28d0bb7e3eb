// JobService.PlanJob: the plan a spec would get if the whole present fleet were free, and where it
// would wait.
#include "coordinator/planner/planner.h"
#include "coordinator/service/queue_view.h"
#include "coordinator/service/rpc/rpcs.h"
#include "coordinator/service/submit_check.h"
#include "coordinator/service/unary.h"

namespace mega::service {
namespace {

grpc::Status Plan(const Shell& shell, const v1::PlanJobRequest& request,
                  v1::PlanJobResponse& response) {
  CheckedSpec checked;
  if (grpc::Status status = CheckSpec(request.metadata(), request.spec(), Purpose::kPlan, &checked);
      !status.ok()) {
    return status;
  }
  const ReadModel& reads = shell.reads;
  planner::ClusterView cluster{.nodes = {}, .revision = reads.revision()};
  for (const auto& node : reads.Nodes()) {
    if (node->state() != v1::NODE_STATE_READY) continue;
    cluster.nodes.push_back(*node);
    cluster.nodes.back().set_devices_in_use(0);  // as if all were free
  }
  absl::StatusOr<v1::Plan> plan = planner::MakePlan(checked.resolved, cluster);
  if (!plan.ok()) {
    return RpcError(plan.status().code() == absl::StatusCode::kResourceExhausted
                        ? absl::StatusCode::kFailedPrecondition
                        : plan.status().code(),
                    "NO_ROOM", std::string(plan.status().message()));
  }
  *response.mutable_queue() = WouldWait(TakePresent(reads, shell.clock.WallNow()), checked.metadata,
                                        checked.resolved, plan->world_size());
  *response.mutable_plan() = *std::move(plan);
  *response.mutable_resolved_spec() = std::move(checked.resolved);
  return grpc::Status::OK;
}

}  // namespace

grpc::ServerUnaryReactor* PlanJob(const Shell& shell, const Caller& caller, Context* context,
                                  const v1::PlanJobRequest& request,
                                  v1::PlanJobResponse& response) {
  if (grpc::Status status = caller.CheckIn(NamespaceOf(request.metadata())); !status.ok()) {
    return Done(context, std::move(status));
  }
  if (grpc::Status status = CheckSpecSize(request.spec()); !status.ok()) {
    return Done(context, std::move(status));
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (!shell.checks.Post([shell, &request, &response, reactor] {
        reactor->Finish(Plan(shell, request, response));
      })) {
    reactor->Finish(TooManyChecks());
  }
  return reactor;
}

}  // namespace mega::service
