// Where the coordinator's durable state lives. rocksdb (the default) and memory (tests, simulator).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "coordinator/core/state.h"
#include "mega/v1/coordinator.pb.h"
#include "mega/v1/telemetry.pb.h"

namespace mega::state {

// Thread-safe: one thread commits while others append and read steps.
class StateStore {
 public:
  virtual ~StateStore() = default;

  // The durable part and its index; options and the live part are the caller's.
  // DATA_LOSS when a record cannot be read, FAILED_PRECONDITION when a newer release wrote it.
  virtual absl::StatusOr<core::State> Load() const = 0;

  // All or nothing, in order, on the disk when it returns OK. After an error nobody knows what is
  // on the disk: the process must stop serving and start again from Load.
  virtual absl::Status Commit(std::span<const v1::Mutation> mutations) = 0;

  // History of rank 0's steps. Not synced: a power cut may lose the newest. A step done again after
  // a recovery replaces the earlier report. An error is as final as that of a Commit: both may
  // share a log.
  virtual absl::Status AppendSteps(std::span<const v1::StepReport> reports) = 0;
  // In order of steps, from `from_step` on, at most `limit`.
  virtual absl::StatusOr<std::vector<v1::StepReport>> ReadSteps(const std::string& job_uid,
                                                                int64_t from_step,
                                                                int64_t limit) const = 0;
  // The highest step after `after_step` that this epoch of the job reported. Above it there may be
  // steps of an earlier epoch, to be made again.
  virtual absl::StatusOr<std::optional<v1::StepReport>> NewestStep(const std::string& job_uid,
                                                                   int64_t epoch,
                                                                   int64_t after_step) const = 0;
};

}  // namespace mega::state
