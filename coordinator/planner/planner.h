// JobSpec × cluster → Plan. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "mega/v1/cluster.pb.h"
#include "mega/v1/job.pb.h"
#include "mega/v1/plan.pb.h"

namespace mega::planner {

// What can be given to a job: READY nodes. Of each, `devices` are those free now and
// `devices_in_use` counts the others.
struct ClusterView {
  std::vector<v1::Node> nodes;
  int64_t revision = 0;
};

// `resolved`: defaults applied and validated (planner/spec). An explicit layout is validated, an
// unset one is chosen: data parallel over the devices asked for.
//   INVALID_ARGUMENT     no cluster could run it; every violation, with the way out
//   RESOURCE_EXHAUSTED   this cluster cannot hold it now (the job waits in the queue)
absl::StatusOr<v1::Plan> MakePlan(const v1::JobSpec& resolved, const ClusterView& cluster);

}  // namespace mega::planner
