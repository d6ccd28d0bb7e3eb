// What the cluster can give, and whether a plan still fits it.
#pragma once

#include <set>
#include <vector>

#include "base/status.h"
#include "coordinator/core/state.h"

namespace mega::core {

// Schedulable nodes as the planner wants them: `devices` are the free ones, `devices_in_use` counts
// the others. A full node is among them: what a job without sizes asks for does not depend on what
// happens to run now.
std::vector<v1::Node> FreeNodes(const State& state);
// The same if the attempts of these jobs had ended.
std::vector<v1::Node> NodesWithout(const State& state, const std::set<JobUid>& ended);

std::vector<v1::Node> Without(std::vector<v1::Node> nodes, const std::set<NodeId>& left_out);
bool HasDevices(const std::vector<v1::Node>& nodes);

// What the cluster has, busy or free, in session at the moment or not: all nodes that have not left
// and that no cordon takes out.
bool IsOfFleet(const v1::Node& node);
std::vector<v1::Node> FleetNodes(const State& state);

// OK if every rank of the plan has a free device of its own on a schedulable node, all of them with
// the numeric libraries that the plan counts on.
absl::Status Fits(const State& state, const v1::Plan& plan);

}  // namespace mega::core
