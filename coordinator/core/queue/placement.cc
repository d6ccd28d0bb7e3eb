#include "coordinator/core/queue/placement.h"

#include <algorithm>
#include <set>
#include <utility>

namespace mega::core {
namespace {

bool IsFree(const State& state, const NodeId& node, int64_t device,
            const std::set<JobUid>& ended = {}) {
  const auto owned = state.index.device_owner.find(node);
  if (owned == state.index.device_owner.end()) return true;
  const auto owner = owned->second.find(device);
  return owner == owned->second.end() || ended.contains(owner->second);
}

}  // namespace

std::vector<v1::Node> FreeNodes(const State& state) { return NodesWithout(state, {}); }

std::vector<v1::Node> NodesWithout(const State& state, const std::set<JobUid>& ended) {
  std::vector<v1::Node> nodes;
  for (const auto& [id, record] : state.durable.nodes) {
    if (!IsSchedulable(state, id)) continue;
    v1::Node node = record;
    node.clear_devices();
    for (const v1::Device& device : record.devices()) {
      if (IsFree(state, id, device.index(), ended)) *node.add_devices() = device;
    }
    node.set_devices_in_use(record.devices_size() - node.devices_size());
    nodes.push_back(std::move(node));
  }
  return nodes;
}

std::vector<v1::Node> Without(std::vector<v1::Node> nodes, const std::set<NodeId>& left_out) {
  std::erase_if(nodes, [&](const v1::Node& node) { return left_out.contains(node.name()); });
  return nodes;
}

bool HasDevices(const std::vector<v1::Node>& nodes) {
  return std::ranges::any_of(nodes, [](const v1::Node& node) { return !node.devices().empty(); });
}

bool IsOfFleet(const v1::Node& node) {
  return node.state() == v1::NODE_STATE_READY && !node.cordoned();
}

std::vector<v1::Node> FleetNodes(const State& state) {
  std::vector<v1::Node> nodes;
  for (const auto& [id, node] : state.durable.nodes) {
    if (!IsOfFleet(node)) continue;
    nodes.push_back(node);
    nodes.back().set_devices_in_use(0);
  }
  return nodes;
}

absl::Status Fits(const State& state, const v1::Plan& plan) {
  if (plan.ranks().empty() || plan.world_size() != plan.ranks_size()) {
    return InvalidArgument("the plan places {} ranks of a world of {}", plan.ranks_size(),
                           plan.world_size());
  }
  std::set<std::pair<NodeId, int64_t>> taken;
  for (int i = 0; i < plan.ranks_size(); ++i) {
    const v1::RankPlacement& placed = plan.ranks(i);
    if (placed.rank() != i) {
      return InvalidArgument("the plan's entry {} is rank {}", i, placed.rank());
    }
    if (!IsSchedulable(state, placed.node())) {
      return Unavailable("rank {} needs node '{}', which is not ready", i, placed.node());
    }
    const v1::Node& node = state.durable.nodes.at(placed.node());
    if (std::ranges::count(node.devices(), placed.device(), &v1::Device::index) != 1) {
      return InvalidArgument(
          "rank {} is placed on device {} of node '{}', which has no such device", i,
          placed.device(), placed.node());
    }
    if (!IsFree(state, placed.node(), placed.device())) {
      return Unavailable("rank {} needs device {} of node '{}', which is in use", i,
                         placed.device(), placed.node());
    }
    if (!taken.insert({placed.node(), placed.device()}).second) {
      return InvalidArgument("the plan gives device {} of node '{}' to two ranks", placed.device(),
                             placed.node());
    }
    if (!plan.numeric_libraries().empty() &&
        !std::ranges::equal(plan.numeric_libraries(), node.numeric_libraries())) {
      return Unavailable("node '{}' has other numeric libraries than the plan", placed.node());
    }
  }
  return absl::OkStatus();
}

}  // namespace mega::core
