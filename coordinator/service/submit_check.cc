#include "coordinator/service/submit_check.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "coordinator/planner/offline_plan.h"
#include "coordinator/planner/spec/spec.h"
#include "coordinator/service/rpc_status.h"

namespace mega::service {
namespace {

// Four job files of the largest kind.
constexpr size_t kMostSpecBytes = 4 << 20;

std::vector<spec::Violation> Lines(const absl::Status& status, std::string_view field) {
  std::vector<spec::Violation> violations;
  for (absl::string_view line : absl::StrSplit(status.message(), '\n', absl::SkipEmpty())) {
    violations.push_back({std::string(field), std::string(line)});
  }
  return violations;
}

std::optional<spec::Violation> MissingSharedFolder(const v1::JobSpec& resolved) {
  const int64_t nodes = resolved.resources().nodes().desired();
  const v1::Checkpoint& checkpoint = resolved.checkpoint();
  const bool saves = checkpoint.save_on_exit() || checkpoint.interval_steps() > 0;
  if (nodes <= 1 || !saves || !checkpoint.directory().empty()) return std::nullopt;
  return spec::Violation{
      "checkpoint.directory",
      fmt::format("resources.nodes.desired is {}, and the nodes of a job save into one folder; "
                  "left out, each would save into its worker's own, and no checkpoint could be "
                  "read back; give a folder on storage that all nodes mount",
                  nodes)};
}

}  // namespace

std::string NamespaceOf(const v1::JobMetadata& metadata) {
  return metadata.namespace_().empty() ? "default" : metadata.namespace_();
}

grpc::Status CheckSpecSize(const v1::JobSpec& spec) {
  const size_t bytes = spec.ByteSizeLong();
  if (bytes <= kMostSpecBytes) return grpc::Status::OK;
  return SpecInvalid({{"spec", fmt::format("the spec has {} bytes; at most {}, put long lists of "
                                           "files into fewer folders",
                                           bytes, kMostSpecBytes)}});
}

grpc::Status CheckSpec(const v1::JobMetadata& metadata, const v1::JobSpec& spec, Purpose purpose,
                       CheckedSpec* checked) {
  checked->metadata = metadata;
  checked->metadata.set_namespace_(NamespaceOf(metadata));
  checked->metadata.clear_owner();  // ours to say
  spec::Resolution resolution = spec::Resolve(checked->metadata, spec);
  std::vector<spec::Violation> violations = std::move(resolution.violations);
  checked->resolved = std::move(resolution.spec);
  if (violations.empty()) {
    const auto plan = planner::MakeOfflinePlan(checked->resolved);
    if (!plan.ok()) violations = Lines(plan.status(), "parallelism");
  }
  if (purpose == Purpose::kRun) {
    if (auto missing = MissingSharedFolder(checked->resolved)) violations.push_back(*missing);
  }
  return violations.empty() ? grpc::Status::OK : SpecInvalid(violations);
}

}  // namespace mega::service
