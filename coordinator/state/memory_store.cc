#include "coordinator/state/memory_store.h"

#include "coordinator/core/apply.h"

namespace mega::state {

absl::StatusOr<core::State> MemoryStore::Load() const {
  MutexLock lock(mu_);
  return state_;
}

absl::Status MemoryStore::Commit(std::span<const v1::Mutation> mutations) {
  MutexLock lock(mu_);
  for (const v1::Mutation& mutation : mutations) {
    core::Apply(state_, mutation);
    if (!mutation.has_delete_job()) continue;
    std::erase_if(steps_,
                  [&](const auto& step) { return step.first.first == mutation.delete_job(); });
  }
  return absl::OkStatus();
}

absl::Status MemoryStore::AppendSteps(std::span<const v1::StepReport> reports) {
  MutexLock lock(mu_);
  for (const v1::StepReport& report : reports) steps_[{report.job_uid(), report.step()}] = report;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<v1::StepReport>> MemoryStore::ReadSteps(const std::string& job_uid,
                                                                   int64_t from_step,
                                                                   int64_t limit) const {
  MutexLock lock(mu_);
  std::vector<v1::StepReport> reports;
  for (auto it = steps_.lower_bound({job_uid, from_step});
       it != steps_.end() && it->first.first == job_uid && std::ssize(reports) < limit; ++it) {
    reports.push_back(it->second);
  }
  return reports;
}

absl::StatusOr<std::optional<v1::StepReport>> MemoryStore::NewestStep(const std::string& job_uid,
                                                                      int64_t epoch,
                                                                      int64_t after_step) const {
  MutexLock lock(mu_);
  std::optional<v1::StepReport> newest;
  for (auto it = steps_.upper_bound({job_uid, after_step});
       it != steps_.end() && it->first.first == job_uid; ++it) {
    if (it->second.epoch() == epoch) newest = it->second;
  }
  return newest;
}

}  // namespace mega::state
