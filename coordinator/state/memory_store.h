// A StateStore in memory: what was committed survives the objects that use it, not the process.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "base/mutex.h"
#include "coordinator/state/state_store.h"

namespace mega::state {

class MemoryStore : public StateStore {
 public:
  absl::StatusOr<core::State> Load() const override;
  absl::Status Commit(std::span<const v1::Mutation> mutations) override;
  absl::Status AppendSteps(std::span<const v1::StepReport> reports) override;
  absl::StatusOr<std::vector<v1::StepReport>> ReadSteps(const std::string& job_uid,
                                                        int64_t from_step,
                                                        int64_t limit) const override;
  absl::StatusOr<std::optional<v1::StepReport>> NewestStep(const std::string& job_uid,
                                                           int64_t epoch,
                                                           int64_t after_step) const override;

 private:
  mutable Mutex mu_;
  core::State state_ MEGA_GUARDED_BY(mu_);
  std::map<std::pair<std::string, int64_t>, v1::StepReport> steps_ MEGA_GUARDED_BY(mu_);
};

}  // namespace mega::state
