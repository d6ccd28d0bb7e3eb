#include "coordinator/planner/placement.h"

#include <algorithm>
#include <limits>
#include <map>

#include "absl/strings/str_join.h"
#include "fmt/format.h"

namespace mega::planner {
namespace {

struct Candidate {
  const v1::Node* node;
  int64_t capacity;  // free devices that this job may take
  int64_t taken = 0;
};

int64_t AllDevices(const v1::Node& node) { return node.devices_size() + node.devices_in_use(); }

// The fewest of `candidates` that hold `world_size` devices, or none. Largest first; the last node
// is the smallest that suffices, so that large ones stay whole for others.
std::vector<Candidate> Fewest(std::vector<Candidate> candidates, int64_t world_size,
                              int64_t most_nodes) {
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.capacity != b.capacity ? a.capacity > b.capacity : a.node->name() < b.node->name();
  });
  std::vector<Candidate> chosen;
  int64_t left = world_size;
  for (size_t i = 0; i < candidates.size() && left > 0; ++i) {
    if (static_cast<int64_t>(chosen.size()) == most_nodes || candidates[i].capacity == 0) break;
    size_t pick = i;
    if (candidates[i].capacity >= left)
      // Equal capacities keep name order: the first of the smallest that suffice.
      for (size_t j = i; j < candidates.size() && candidates[j].capacity >= left; ++j)
        if (candidates[j].capacity < candidates[pick].capacity) pick = j;
    candidates[pick].taken = std::min(candidates[pick].capacity, left);
    left -= candidates[pick].taken;
    chosen.push_back(candidates[pick]);
  }
  if (left > 0) chosen.clear();
  std::sort(chosen.begin(), chosen.end(),
            [](const Candidate& a, const Candidate& b) { return a.node->name() < b.node->name(); });
  return chosen;
}

Placement Assign(const std::vector<Candidate>& chosen) {
  Placement placement;
  placement.threads_per_device = std::numeric_limits<int64_t>::max();
  placement.memory_bytes = std::numeric_limits<int64_t>::max();
  for (const Candidate& candidate : chosen) {
    placement.nodes.push_back(candidate.node->name());
    std::vector<const v1::Device*> devices;
    for (const v1::Device& device : candidate.node->devices()) devices.push_back(&device);
    std::sort(devices.begin(), devices.end(),
              [](const v1::Device* a, const v1::Device* b) { return a->index() < b->index(); });
    for (int64_t i = 0; i < candidate.taken; ++i) {
      const v1::Device& device = *devices[static_cast<size_t>(i)];
      v1::RankPlacement& rank = placement.ranks.emplace_back();
      rank.set_rank(static_cast<int64_t>(placement.ranks.size()) - 1);
      rank.set_node(candidate.node->name());
      rank.set_device(device.index());
      placement.threads_per_device =
          std::min(placement.threads_per_device, std::max<int64_t>(device.threads(), 1));
      placement.memory_bytes =
          std::min(placement.memory_bytes, std::max<int64_t>(device.memory_bytes(), 0));
    }
  }
  const auto& libraries = chosen.front().node->numeric_libraries();
  placement.numeric_libraries.assign(libraries.begin(), libraries.end());
  return placement;
}

std::string Libraries(const v1::Node& node) {
  if (node.numeric_libraries().empty()) return "none stated";
  return absl::StrJoin(node.numeric_libraries(), ", ");
}

// "n1 has 2, n2 has 1 and 1 busy" for the largest few.
std::string Describe(std::vector<v1::Node> nodes) {
  std::sort(nodes.begin(), nodes.end(), [](const v1::Node& a, const v1::Node& b) {
    return AllDevices(a) != AllDevices(b) ? AllDevices(a) > AllDevices(b) : a.name() < b.name();
  });
  constexpr size_t kMost = 8;
  std::vector<std::string> parts;
  for (size_t i = 0; i < std::min(nodes.size(), kMost); ++i)
    parts.push_back(nodes[i].devices_in_use() > 0
                        ? fmt::format("{} has {} free and {} busy", nodes[i].name(),
                                      nodes[i].devices_size(), nodes[i].devices_in_use())
                        : fmt::format("{} has {} free", nodes[i].name(), nodes[i].devices_size()));
  if (nodes.size() > kMost) parts.push_back(fmt::format("{} more", nodes.size() - kMost));
  return absl::StrJoin(parts, ", ");
}

absl::Status Short(const v1::Resources& resources, int64_t world_size,
                   const std::vector<v1::Node>& nodes) {
  const int64_t most_nodes = std::max<int64_t>(resources.nodes().desired(), 1);
  std::string asked = fmt::format("the job needs {} {} on at most {} {}", world_size,
                                  world_size == 1 ? "device" : "devices", most_nodes,
                                  most_nodes == 1 ? "node" : "nodes");
  if (resources.has_devices_per_node())
    asked += fmt::format(", at most {} on each", resources.devices_per_node());
  if (nodes.empty())
    return absl::ResourceExhaustedError(asked + ", but no node is ready; start a worker");
  // Would it fit if nothing else ran?
  std::vector<Candidate> idle;
  const int64_t most_each = resources.has_devices_per_node() ? resources.devices_per_node()
                                                             : std::numeric_limits<int64_t>::max();
  for (const v1::Node& node : nodes) idle.push_back({&node, std::min(AllDevices(node), most_each)});
  const bool waits_for_others = !Fewest(idle, world_size, most_nodes).empty();
  return absl::ResourceExhaustedError(
      fmt::format("{}, but {}; {}", asked, Describe(nodes),
                  waits_for_others ? "it waits until devices are free"
                                   : "add nodes, raise resources.nodes.desired, or lower "
                                     "parallelism.data_parallel_size"));
}

}  // namespace

int64_t DevicesOfLargest(const std::vector<v1::Node>& nodes, int64_t count) {
  std::vector<int64_t> sizes;
  for (const v1::Node& node : nodes) sizes.push_back(AllDevices(node));
  std::sort(sizes.rbegin(), sizes.rend());
  int64_t devices = 0;
  for (int64_t i = 0; i < std::min<int64_t>(count, static_cast<int64_t>(sizes.size())); ++i)
    devices += sizes[static_cast<size_t>(i)];
  return devices;
}

absl::StatusOr<Placement> Place(const v1::Resources& resources, int64_t world_size,
                                const std::vector<v1::Node>& nodes) {
  const int64_t most_each = resources.has_devices_per_node() ? resources.devices_per_node()
                                                             : std::numeric_limits<int64_t>::max();
  const int64_t most_nodes = std::max<int64_t>(resources.nodes().desired(), 1);
  std::map<std::string, std::vector<Candidate>> by_libraries;
  std::vector<Candidate> mixed;
  for (const v1::Node& node : nodes) {
    const Candidate candidate{&node, std::min<int64_t>(node.devices_size(), most_each)};
    by_libraries[Libraries(node)].push_back(candidate);
    mixed.push_back(candidate);
  }
  std::vector<Candidate> best;
  for (const auto& [libraries, candidates] : by_libraries) {
    std::vector<Candidate> chosen = Fewest(candidates, world_size, most_nodes);
    if (!chosen.empty() && (best.empty() || chosen.size() < best.size())) best = std::move(chosen);
  }
  if (!best.empty()) return Assign(best);
  const std::vector<Candidate> chosen = Fewest(mixed, world_size, most_nodes);
  if (chosen.empty()) return Short(resources, world_size, nodes);
  std::vector<std::string> parts;
  for (const Candidate& candidate : chosen)
    parts.push_back(fmt::format("{}: {}", candidate.node->name(), Libraries(*candidate.node)));
  return absl::ResourceExhaustedError(fmt::format(
      "the {} free devices are on nodes with different numeric libraries ({}), which would not "
      "give bit-identical replicas; install the same versions",
      world_size, absl::StrJoin(parts, "; ")));
}

}  // namespace mega::planner
