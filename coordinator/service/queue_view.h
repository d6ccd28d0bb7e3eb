// The queue as people see it: who waits for how many devices and why, since when, and when each may
// start. Estimates count devices only, and only what somebody said: the pace of what runs,
// scheduling.estimated_runtime, scheduling.time_limit. Where one of these is missing nobody can
// say, for the job and for those behind it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "coordinator/service/read_model.h"

namespace mega::service {

// What readers know at one moment.
struct Present {
  std::vector<ReadModel::Unfinished> jobs;
  std::vector<std::shared_ptr<const v1::Node>> nodes;
  std::vector<v1::Namespace> namespaces;  // by name
  absl::Time now;
};
Present TakePresent(const ReadModel& reads, absl::Time now);

// Calls `visit` with each that waits, in the order of the queue, until it answers false: the rest
// is not looked at.
void VisitQueue(const Present& present, absl::FunctionRef<bool(v1::QueueEntry)> visit);

// Where a job of this spec would wait, and whose devices it would take; `devices` as planned for
// it.
v1::QueueEntry WouldWait(const Present& present, const v1::JobMetadata& metadata,
                         const v1::JobSpec& resolved, int64_t devices);

// When the job gives its devices back; nullopt: nobody can say.
std::optional<absl::Time> EndOf(const ReadModel::Unfinished& running, absl::Time now);

}  // namespace mega::service
