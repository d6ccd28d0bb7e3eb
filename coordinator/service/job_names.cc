#include "coordinator/service/job_names.h"

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "coordinator/service/rpc_status.h"

namespace mega::service {
namespace {

constexpr size_t kMostNameBytes = 512;
constexpr size_t kMostCandidates = 1000;
constexpr size_t kListed = 5;

using Jobs = std::vector<std::shared_ptr<const v1::Job>>;

bool IsOlder(const std::shared_ptr<const v1::Job>& a, const std::shared_ptr<const v1::Job>& b) {
  return FromProto(a->create_time()) < FromProto(b->create_time());
}

grpc::Status Ambiguous(std::string_view name, const Jobs& jobs) {
  std::string list;
  for (size_t i = 0; i < jobs.size() && i < kListed; ++i) {
    list +=
        fmt::format("{}{} ({})", i == 0 ? "" : ", ", jobs[i]->uid(), jobs[i]->metadata().name());
  }
  if (jobs.size() > kListed) list += fmt::format(" and {} more", jobs.size() - kListed);
  return FieldInvalid(
      "JOB_NAME_AMBIGUOUS", "name",
      fmt::format("'{}' means several jobs: {}; give more of the name or uid", name, list));
}

}  // namespace

grpc::Status FindJob(const ReadModel& reads, const Caller& caller, std::string_view name,
                     std::shared_ptr<const v1::Job>* job) {
  if (name.empty() || name.size() > kMostNameBytes) {
    return FieldInvalid("JOB_NAME_INVALID", "name",
                        "give a job's name, its uid, or the beginning of one");
  }
  // namespaces/{namespace}/jobs/{id}
  std::string_view id = name;
  std::string_view name_space;
  constexpr std::string_view kNamespaces = "namespaces/";
  constexpr std::string_view kJobs = "/jobs/";
  if (name.starts_with(kNamespaces)) {
    const size_t jobs_at = name.find(kJobs);
    if (jobs_at == std::string_view::npos) {
      return FieldInvalid("JOB_NAME_INVALID", "name",
                          fmt::format("'{}' is not namespaces/NAMESPACE/jobs/JOB", name));
    }
    name_space = name.substr(kNamespaces.size(), jobs_at - kNamespaces.size());
    id = name.substr(jobs_at + kJobs.size());
  }
  if (name_space == "-") name_space = "";
  if (!name_space.empty()) {
    if (grpc::Status status = caller.CheckIn(std::string(name_space)); !status.ok()) return status;
  }
  const auto is_asked = [&](const std::string& of) {
    return (name_space.empty() || of == name_space) && caller.Sees(of);
  };
  const auto keep_asked = [&](Jobs& jobs) {
    std::erase_if(jobs, [&](const auto& j) { return !is_asked(j->metadata().namespace_()); });
  };
  const auto not_found = [&] {
    return ResourceNotFound(
        "job", name, fmt::format("no job '{}'{}; megactl get lists them", name, caller.SeenText()));
  };
  if (id.empty()) return not_found();

  if (auto exact = reads.JobRecord(std::string(id))) {
    Jobs one{std::move(exact)};
    keep_asked(one);
    if (one.empty()) return not_found();
    *job = one[0];
    return caller.CheckIn(one[0]->metadata().namespace_());
  }
  Jobs found = reads.FindByName(id);
  keep_asked(found);
  if (found.empty()) {
    found = reads.FindByPrefix(id, is_asked, kMostCandidates);
  }
  if (found.empty()) return not_found();
  const auto same_name = [&](const auto& j) {
    return j->metadata().name() == found[0]->metadata().name() &&
           j->metadata().namespace_() == found[0]->metadata().namespace_();
  };
  if (!std::all_of(found.begin(), found.end(), same_name)) return Ambiguous(name, found);
  *job = *std::max_element(found.begin(), found.end(), IsOlder);
  return caller.CheckIn((*job)->metadata().namespace_());
}

grpc::Status JobGone(const core::JobUid& uid) {
  return ResourceNotFound(
      "job", uid, fmt::format("job '{}' ended long ago and is forgotten (--job-retention)", uid));
}

}  // namespace mega::service
