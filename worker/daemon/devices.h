// The devices this node offers.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "mega/v1/cluster.pb.h"

namespace mega::daemon {

int64_t UsableCores();  // those this process may run on

// `count` CPU slots that share the cores and the memory; 0: one for each core.
absl::StatusOr<std::vector<v1::Device>> CpuDevices(int64_t count);

}  // namespace mega::daemon
