// How many devices a job asks for, and whether so many nodes with so many free ones can give them:
// counts alone, as the planner places them. Its memory and libraries the planner knows; it has the
// last word.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "coordinator/core/state.h"

namespace mega::core {

struct Demand {
  static constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  int64_t devices = 1;
  int64_t nodes = kAny;     // at most
  int64_t per_node = kAny;  // at most, of each
};

// On `nodes` nodes instead of resources.nodes.desired; 0: as that says. `sizes`: devices, busy or
// free, of the nodes of the fleet; a job that says no number asks for the largest of them.
Demand DemandOf(const v1::JobSpec& resolved, int64_t nodes, std::vector<int64_t> sizes);
// The same of a job in the present fleet; 0: on as many nodes as it wants.
Demand DemandOf(const State& state, const v1::Job& job, int64_t nodes = 0);

// `free`: devices of each node that could be given.
bool HasRoom(std::vector<int64_t> free, const Demand& demand);

}  // namespace mega::core
