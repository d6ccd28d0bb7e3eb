#include "coordinator/planner/spec/device_rules.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "fmt/format.h"

namespace mega::spec {
namespace {

constexpr std::string_view kSizes[] = {
    "resources.nodes.desired",           "resources.devices_per_node",
    "parallelism.data_parallel_size",    "parallelism.tensor_parallel_size",
    "parallelism.context_parallel_size", "parallelism.pipeline_parallel_size"};

// An unset size is 1. Capped factors have an exact product.
int64_t OrOne(int64_t size) { return std::clamp<int64_t>(size, 1, kMostDevices + 1); }

int64_t CappedProduct(int64_t a, int64_t b) {
  return std::min(OrOne(a) * OrOne(b), kMostDevices + 1);
}

}  // namespace

int64_t DevicesOfReplica(const v1::JobSpec& resolved) {
  const v1::Parallelism& sizes = resolved.parallelism();
  return CappedProduct(CappedProduct(sizes.tensor_parallel_size(), sizes.context_parallel_size()),
                       sizes.pipeline_parallel_size());
}

int64_t DevicesAsked(const v1::JobSpec& resolved) {
  const int64_t replica = DevicesOfReplica(resolved);
  const v1::Parallelism& parallelism = resolved.parallelism();
  if (parallelism.has_data_parallel_size())
    return CappedProduct(replica, parallelism.data_parallel_size());
  const v1::Resources& resources = resolved.resources();
  const int64_t nodes = OrOne(resources.nodes().desired());
  if (resources.has_devices_per_node()) return CappedProduct(nodes, resources.devices_per_node());
  return std::max(replica, nodes);
}

void CheckDevices(const v1::JobSpec& resolved, std::vector<Violation>& out) {
  const v1::Resources& resources = resolved.resources();
  const int64_t nodes = resources.nodes().desired(), each = resources.devices_per_node();
  const int64_t replicas = resolved.parallelism().data_parallel_size();
  // What already broke a rule of its own is not judged against others.
  for (const Violation& violation : out)
    if (std::ranges::find(kSizes, violation.field) != std::end(kSizes)) return;
  const auto add = [&out](const std::string& field, const std::string& rest) {
    out.push_back({field, field + " " + rest});
  };
  if (DevicesAsked(resolved) > kMostDevices) {
    const std::string most = fmt::format("a job has at most {} devices", kMostDevices);
    if (resolved.parallelism().has_data_parallel_size())
      return add("parallelism.data_parallel_size",
                 fmt::format("is {}, but {}; choose at most {}", replicas, most,
                             kMostDevices / DevicesOfReplica(resolved)));
    if (resources.has_devices_per_node())
      return add("resources.devices_per_node",
                 fmt::format("is {} and resources.nodes.desired is {}, but {}; choose fewer nodes "
                             "or devices, or give parallelism.data_parallel_size",
                             each, nodes, most));
    return add("resources.nodes.desired",
               fmt::format("is {}, but {}, one or more on each node; choose at most {}", nodes,
                           most, kMostDevices));
  }
  // Both factors are bounded (2^20 · 2^12), so the product is exact.
  if (resources.has_devices_per_node() && replicas > nodes * each)
    add("parallelism.data_parallel_size",
        fmt::format("is {} but resources.nodes.desired × resources.devices_per_node is {} × {}; "
                    "choose at most {}, or more devices",
                    replicas, nodes, each, nodes * each));
}

}  // namespace mega::spec
