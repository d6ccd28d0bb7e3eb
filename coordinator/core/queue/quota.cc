#include "coordinator/core/queue/quota.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "base/dns_name.h"
#include "base/status.h"
#include "coordinator/core/queue/demand.h"
#include "fmt/core.h"

namespace mega::core {
namespace {

constexpr size_t kMostNamespaces = 10'000;
constexpr int64_t kMostPriority = 1'000'000;  // of scheduling.priority

const v1::Namespace* Limits(const State& state, const std::string& name) {
  const auto limits = state.durable.namespaces.find(name);
  return limits == state.durable.namespaces.end() ? nullptr : &limits->second;
}

NamespaceUse UseOf(const State& state, const std::string& name) {
  const auto use = state.index.namespace_use.find(name);
  return use == state.index.namespace_use.end() ? NamespaceUse() : use->second;
}

// What is wrong with the limits; empty: nothing.
std::string Invalid(const v1::Namespace& limits) {
  if (!IsDnsLabel(limits.name())) {
    return fmt::format("namespace.name is '{}'; write {}", limits.name(), kDnsLabelRule);
  }
  if (limits.max_devices() < 0 || limits.max_jobs() < 0) {
    return fmt::format(
        "max_devices is {} and max_jobs is {}; give 0 for no limit, or more than 0 "
        "(max_devices 1 lets one device be used)",
        limits.max_devices(), limits.max_jobs());
  }
  if (limits.has_max_priority() &&
      (limits.max_priority() < -kMostPriority || limits.max_priority() > kMostPriority)) {
    return fmt::format("max_priority is {}; scheduling.priority is between {} and {}",
                       limits.max_priority(), -kMostPriority, kMostPriority);
  }
  return "";
}

}  // namespace

std::string OverQuota(const State& state, const v1::Job& job, int64_t devices) {
  const std::string& name = job.metadata().namespace_();
  const v1::Namespace* limits = Limits(state, name);
  if (limits == nullptr || limits->max_devices() == 0 || state.options.mutants.ignore_quota) {
    return "";
  }
  if (devices > limits->max_devices()) {
    return fmt::format(
        "the job needs {} devices and namespace '{}' may hold {} (max_devices); raise that, or "
        "make the job smaller",
        devices, name, limits->max_devices());
  }
  const int64_t held = UseOf(state, name).devices;
  if (devices <= limits->max_devices() - held) return "";
  return fmt::format("the job needs {} devices and namespace '{}' holds {} of its {} (max_devices)",
                     devices, name, held, limits->max_devices());
}

std::string OverQuota(const State& state, const v1::Job& job) {
  const v1::Namespace* limits = Limits(state, job.metadata().namespace_());
  if (limits == nullptr || limits->max_devices() == 0) return "";
  return OverQuota(state, job, DemandOf(state, job).devices);
}

absl::Status CheckQuota(const State& state, const std::string& name_space, int64_t priority) {
  const v1::Namespace* limits = Limits(state, name_space);
  if (limits == nullptr) return absl::OkStatus();
  if (limits->has_max_priority() && priority > limits->max_priority()) {
    return InvalidArgument(
        "scheduling.priority is {} but jobs of namespace '{}' may have at most {} (max_priority)",
        priority, name_space, limits->max_priority());
  }
  const int64_t jobs = UseOf(state, name_space).jobs;
  if (limits->max_jobs() > 0 && jobs >= limits->max_jobs()) {
    return absl::ResourceExhaustedError(
        fmt::format("namespace '{}' has {} unfinished jobs and may have {} (max_jobs); wait for "
                    "one to end, or cancel one",
                    name_space, jobs, limits->max_jobs()));
  }
  return absl::OkStatus();
}

void UpdateNamespace(Draft& draft, const v1::CoreRequest& request) {
  v1::Namespace limits = request.update_namespace().namespace_();
  if (const std::string invalid = Invalid(limits); !invalid.empty()) {
    return draft.ReplyError(request.call(), absl::StatusCode::kInvalidArgument, "NAMESPACE_INVALID",
                            invalid);
  }
  const v1::Namespace* known = Limits(draft.state(), limits.name());
  if (known == nullptr && draft.state().durable.namespaces.size() >= kMostNamespaces) {
    return draft.ReplyError(
        request.call(), absl::StatusCode::kResourceExhausted, "TOO_MANY_NAMESPACES",
        fmt::format("{} namespaces have limits, as many as can be; delete one", kMostNamespaces));
  }
  *limits.mutable_create_time() = known == nullptr ? draft.wall() : known->create_time();
  limits.clear_devices_in_use();
  limits.clear_unfinished_jobs();
  const std::string name = limits.name();
  draft.PutNamespace(std::move(limits));
  v1::ReplyCall reply;
  reply.set_call(request.call());
  *reply.mutable_namespace_() = NamespaceView(draft.state(), name);
  draft.Reply(std::move(reply));
}

void DeleteNamespace(Draft& draft, const v1::CoreRequest& request) {
  const std::string& name = request.delete_namespace().name();
  if (Limits(draft.state(), name) == nullptr) {
    return draft.ReplyError(
        request.call(), absl::StatusCode::kNotFound, "NAMESPACE_NOT_FOUND",
        fmt::format("no limits are set for namespace '{}'; `megactl namespaces list` shows "
                    "those that have some",
                    name));
  }
  if (const int64_t jobs = UseOf(draft.state(), name).jobs; jobs > 0) {
    return draft.ReplyError(
        request.call(), absl::StatusCode::kFailedPrecondition, "NAMESPACE_IN_USE",
        fmt::format("namespace '{}' has {} unfinished jobs; wait for them, cancel them, or set its "
                    "limits to 0",
                    name, jobs));
  }
  draft.DeleteNamespace(name);
  v1::ReplyCall reply;
  reply.set_call(request.call());
  draft.Reply(std::move(reply));
}

v1::Namespace NamespaceView(const State& state, const std::string& name) {
  v1::Namespace view;
  if (const v1::Namespace* limits = Limits(state, name)) view = *limits;
  view.set_name(name);
  const NamespaceUse use = UseOf(state, name);
  view.set_devices_in_use(use.devices);
  view.set_unfinished_jobs(use.jobs);
  return view;
}

std::vector<v1::Namespace> NamespaceViews(const State& state) {
  std::set<std::string> names;
  for (const auto& [name, limits] : state.durable.namespaces) names.insert(name);
  for (const auto& [name, use] : state.index.namespace_use) names.insert(name);
  std::vector<v1::Namespace> views;
  for (const std::string& name : names) views.push_back(NamespaceView(state, name));
  return views;
}

}  // namespace mega::core
