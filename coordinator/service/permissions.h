// What each method needs of its caller: the one table of it.
#pragma once

#include <string_view>

#include "coordinator/service/roles.h"

namespace mega::service {

struct Permission {
  enum class Scope {
    kNobody,        // no role at all: whoever is let in
    kAnyNamespace,  // the role in one namespace or another
    kNamespace,     // in the namespace that the request, or the job in it, is of; of a list of
                    // several namespaces, what is of others is left out
    kCluster,       // in all namespaces
    kWorker,        // no user may: the worker of a node does
  };
  std::string_view method;  // "JobService.CancelJob"
  Scope scope;
  Role role = Role::kNone;
  bool changes = false;  // something: it is not only a look
};

using Scope = Permission::Scope;

inline constexpr Permission kPermissions[] = {
    {"JobService.GetJob", Scope::kNamespace, Role::kViewer},
    {"JobService.ListJobs", Scope::kNamespace, Role::kViewer},
    {"JobService.ListQueue", Scope::kNamespace, Role::kViewer},
    {"JobService.PlanJob", Scope::kNamespace, Role::kViewer},
    {"JobService.StreamLogs", Scope::kNamespace, Role::kViewer},
    {"JobService.StreamSteps", Scope::kNamespace, Role::kViewer},
    {"JobService.WatchEvents", Scope::kNamespace, Role::kViewer},
    {"JobService.CancelJob", Scope::kNamespace, Role::kSubmitter, /*changes=*/true},
    {"JobService.DeleteCheckpoint", Scope::kNamespace, Role::kSubmitter, /*changes=*/true},
    {"JobService.PauseJob", Scope::kNamespace, Role::kSubmitter, /*changes=*/true},
    {"JobService.PinCheckpoint", Scope::kNamespace, Role::kSubmitter, /*changes=*/true},
    {"JobService.RestartJob", Scope::kNamespace, Role::kSubmitter, /*changes=*/true},
    {"JobService.ResumeJob", Scope::kNamespace, Role::kSubmitter, /*changes=*/true},
    {"JobService.SaveCheckpoint", Scope::kNamespace, Role::kSubmitter, /*changes=*/true},
    {"JobService.ScaleJob", Scope::kNamespace, Role::kSubmitter, /*changes=*/true},
    {"JobService.SubmitJob", Scope::kNamespace, Role::kSubmitter, /*changes=*/true},
    {"ClusterService.GetVersion", Scope::kNobody},
    {"ClusterService.WhoAmI", Scope::kNobody},
    {"ClusterService.GetNode", Scope::kAnyNamespace, Role::kViewer},
    {"ClusterService.ListNamespaces", Scope::kNamespace, Role::kViewer},
    {"ClusterService.ListNodes", Scope::kAnyNamespace, Role::kViewer},
    {"ClusterService.CordonNode", Scope::kCluster, Role::kOperator, /*changes=*/true},
    {"ClusterService.DrainNode", Scope::kCluster, Role::kOperator, /*changes=*/true},
    {"ClusterService.UncordonNode", Scope::kCluster, Role::kOperator, /*changes=*/true},
    {"ClusterService.CaptureJournal", Scope::kCluster,
     Role::kAdmin},  // it holds the inputs of all jobs
    {"ClusterService.DeleteNamespace", Scope::kCluster, Role::kAdmin, /*changes=*/true},
    {"ClusterService.ListAuditRecords", Scope::kCluster, Role::kAdmin},
    {"ClusterService.UpdateNamespace", Scope::kCluster, Role::kAdmin, /*changes=*/true},
    {"WorkerService.PushLogs", Scope::kWorker},
    {"WorkerService.PushSteps", Scope::kWorker},
    {"WorkerService.Session", Scope::kWorker},
};

// Of a method that the table has; another one does not compile.
consteval const Permission& PermissionOf(std::string_view method) {
  for (const Permission& permission : kPermissions)
    if (permission.method == method) return permission;
  throw "there is no such row in kPermissions";
}

}  // namespace mega::service
