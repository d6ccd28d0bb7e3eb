#include "coordinator/core/queue/demand.h"

#include <algorithm>
#include <functional>

#include "coordinator/core/queue/placement.h"
#include "coordinator/core/recovery/resize.h"

namespace mega::core {
namespace {

// No cluster has more; below it products of hostile sizes stay exact.
constexpr int64_t kMost = int64_t{1} << 24;

int64_t Product(int64_t a, int64_t b) {
  return std::min(std::clamp<int64_t>(a, 1, kMost) * std::clamp<int64_t>(b, 1, kMost), kMost);
}

int64_t SumOfLargest(std::vector<int64_t> sizes, int64_t count, int64_t most_each) {
  if (!std::ranges::is_sorted(sizes, std::greater<>())) std::ranges::sort(sizes, std::greater<>());
  int64_t sum = 0;
  for (int64_t i = 0; i < std::min<int64_t>(count, std::ssize(sizes)); ++i) {
    sum += std::min(sizes[static_cast<size_t>(i)], most_each);
  }
  return sum;
}

}  // namespace

Demand DemandOf(const v1::JobSpec& resolved, int64_t nodes, std::vector<int64_t> sizes) {
  const v1::Parallelism& layout = resolved.parallelism();
  const v1::Resources& resources = resolved.resources();
  const int64_t desired = std::max<int64_t>(resources.nodes().desired(), 1);
  if (nodes <= 0) nodes = desired;
  const int64_t replica =
      Product(Product(layout.tensor_parallel_size(), layout.context_parallel_size()),
              layout.pipeline_parallel_size());
  Demand demand;
  if (resources.nodes().has_desired()) demand.nodes = nodes;
  if (resources.has_devices_per_node()) demand.per_node = resources.devices_per_node();
  if (layout.has_data_parallel_size()) {
    demand.devices = Product(replica, Product(layout.data_parallel_size(), nodes) / desired);
    return demand;
  }
  const int64_t devices = resources.has_devices_per_node()
                              ? Product(nodes, resources.devices_per_node())
                              : SumOfLargest(std::move(sizes), nodes, Demand::kAny);
  // A replica beyond these would have no micro-batch.
  const int64_t micro_batch = std::max<int64_t>(resolved.training().micro_batch_size(), 1);
  const int64_t batch = std::max<int64_t>(resolved.training().global_batch_size(), 1);
  const int64_t replicas =
      std::min(devices / replica, batch / micro_batch + (batch % micro_batch != 0));
  demand.devices = Product(replica, replicas);
  return demand;
}

Demand DemandOf(const State& state, const v1::Job& job, int64_t nodes) {
  std::vector<int64_t> sizes;
  const v1::JobSpec& spec = job.resolved_spec();
  const bool is_counted =
      spec.parallelism().has_data_parallel_size() || spec.resources().has_devices_per_node();
  if (!is_counted) {
    for (const auto& [id, node] : state.durable.nodes) {
      if (IsOfFleet(node)) sizes.push_back(node.devices_size());
    }
  }
  return DemandOf(spec, nodes > 0 ? nodes : WantedNodes(job), std::move(sizes));
}

bool HasRoom(std::vector<int64_t> free, const Demand& demand) {
  return SumOfLargest(std::move(free), demand.nodes, demand.per_node) >= demand.devices;
}

}  // namespace mega::core
