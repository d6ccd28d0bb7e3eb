// How many devices a job may ask for.
#pragma once

#include <cstdint>
#include <vector>

#include "coordinator/planner/spec/spec.h"

namespace mega::spec {

// Of one job. Far above what one coordinator is measured with; bounds the work of a hostile spec,
// of which each key alone is within its own bounds.
inline constexpr int64_t kMostDevices = 65'536;

// Devices that one replica fills, at most kMostDevices + 1.
int64_t DevicesOfReplica(const v1::JobSpec& resolved);

// Devices that the job asks for, at most kMostDevices + 1: all replicas where their number is
// given, else those of its nodes, of which each has at least one.
int64_t DevicesAsked(const v1::JobSpec& resolved);

//   parallelism.data_parallel_size fits resources.nodes.desired × devices_per_node
//   the job asks for at most kMostDevices
// Silent about keys that `out` already speaks of.
void CheckDevices(const v1::JobSpec& resolved, std::vector<Violation>& out);

}  // namespace mega::spec
