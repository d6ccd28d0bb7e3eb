#include "coordinator/service/submit_check.h"

#include <algorithm>

#include "absl/strings/str_split.h"
#include "coordinator/planner/spec/spec.h"
#include "coordinator/service/rpc_status.h"

namespace mega::service {
namespace {

// Of one job. Far above what one coordinator is measured with; bounds the work of a hostile spec.
constexpr int64_t kMostDevices = 65'536;

// Four job files of the largest kind.
constexpr size_t kMostSpecBytes = 4 << 20;

int64_t OrOne(int64_t value) { return std::clamp<int64_t>(value, 1, kMostDevices + 1); }

int64_t CappedProduct(int64_t a, int64_t b) {
  return std::min<int64_t>(OrOne(a) * OrOne(b), kMostDevices + 1);
}

int64_t DevicesAsked(const v1::JobSpec& spec) {
  const v1::Parallelism& p = spec.parallelism();
  const int64_t replica =
      CappedProduct(CappedProduct(p.tensor_parallel_size(), p.context_parallel_size()),
                    p.pipeline_parallel_size());
  if (p.has_data_parallel_size()) return CappedProduct(replica, p.data_parallel_size());
  const int64_t nodes = OrOne(spec.resources().nodes().desired());
  if (spec.resources().has_devices_per_node()) {
    return CappedProduct(nodes, spec.resources().devices_per_node());
  }
  return std::max(replica, nodes);
}

std::vector<spec::Violation> Lines(const absl::Status& status, std::string_view field) {
  std::vector<spec::Violation> violations;
  for (absl::string_view line : absl::StrSplit(status.message(), '\n', absl::SkipEmpty())) {
    violations.push_back({std::string(field), std::string(line)});
  }
  return violations;
}

}  // namespace

grpc::Status CheckSpecSize(const v1::JobSpec& spec) {
  const size_t bytes = spec.ByteSizeLong();
  if (bytes <= kMostSpecBytes) return grpc::Status::OK;
  return SpecInvalid({{"spec", fmt::format("the spec has {} bytes; at most {}, put long lists of "
                                           "files into fewer folders",
                                           bytes, kMostSpecBytes)}});
}

planner::ClusterView ImaginaryCluster(const v1::JobSpec& resolved) {
  const int64_t world = DevicesAsked(resolved);
  const int64_t asked_nodes = OrOne(resolved.resources().nodes().desired());
  const int64_t per_node = resolved.resources().has_devices_per_node()
                               ? OrOne(resolved.resources().devices_per_node())
                               : (world + asked_nodes - 1) / asked_nodes;
  const int64_t nodes = std::max(asked_nodes, (world + per_node - 1) / per_node);
  planner::ClusterView cluster;
  int64_t left = kMostDevices;
  for (int64_t n = 0; n < nodes && left > 0; ++n) {
    v1::Node& node = cluster.nodes.emplace_back();
    node.set_name(fmt::format("node-{}", n));
    node.set_state(v1::NODE_STATE_READY);
    for (int64_t d = 0; d < per_node && left > 0; ++d, --left) {
      v1::Device& device = *node.add_devices();
      device.set_index(d);
      device.set_kind("cpu");
      device.set_threads(1);
    }
  }
  return cluster;
}

grpc::Status CheckSpec(const v1::JobMetadata& metadata, const v1::JobSpec& spec,
                       CheckedSpec* checked) {
  checked->metadata = metadata;
  if (checked->metadata.namespace_().empty()) checked->metadata.set_namespace_("default");
  checked->metadata.clear_owner();  // ours to say
  spec::Resolution resolution = spec::Resolve(checked->metadata, spec);
  if (!resolution.violations.empty()) return SpecInvalid(resolution.violations);
  checked->resolved = std::move(resolution.spec);
  if (const int64_t devices = DevicesAsked(checked->resolved); devices > kMostDevices) {
    return SpecInvalid({{"parallelism", fmt::format("the job asks for more than {} devices; "
                                                    "choose smaller sizes",
                                                    kMostDevices)}});
  }
  const auto plan = planner::MakePlan(checked->resolved, ImaginaryCluster(checked->resolved));
  if (!plan.ok()) return SpecInvalid(Lines(plan.status(), "parallelism"));
  return grpc::Status::OK;
}

}  // namespace mega::service
