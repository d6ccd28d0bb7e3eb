// 1F1B: PipeDream-Flush, Narayanan et al. 2021 (arXiv:2104.04473), section 2.2.
#pragma once

#include <cstdint>
#include <vector>

#include "coordinator/planner/schedule/schedule.h"

namespace mega::planner {

// Stage s of p runs min(p − s − 1, micro_batches) forwards ahead, then one forward and one backward
// in turn, then the backwards that are left: never more than p − s micro-batches are alive.
// 0 ≤ stage < stages, micro_batches ≥ 1.
std::vector<Action> OneForwardOneBackward(int64_t stages, int64_t stage, int64_t micro_batches);

}  // namespace mega::planner
