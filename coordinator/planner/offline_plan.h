// The plan of a job where no cluster is asked: how it would run, and whether it ever could.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "mega/v1/job.pb.h"
#include "mega/v1/plan.pb.h"

namespace mega::planner {

// READY nodes of one kind; what they cannot hold, none can.
struct ImaginaryNodes {
  int64_t nodes = 0;    // 0: as many as the job asks for
  int64_t devices = 0;  // on each; 0: as many as the job asks for
  int64_t cores = 1;    // of each, shared out to its devices
};

// MakePlan on them, with its errors.
//   OUT_OF_RANGE   together they have more than spec::kMostDevices, of which no job uses more
absl::StatusOr<v1::Plan> MakeOfflinePlan(const v1::JobSpec& resolved,
                                         const ImaginaryNodes& nodes = {});

}  // namespace mega::planner
