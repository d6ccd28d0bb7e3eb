// Schedules are data: a pure function from (kind, stage, micro-batches) to the actions of one
// stage. The executor runs them, the simulator times them, tests check them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "mega/v1/plan.pb.h"

namespace mega::planner {

struct Action {
  enum class Kind : uint8_t {
    kForward,         // of `micro_batch` through `chunk`
    kBackwardInput,   // gradient of the stage's input
    kBackwardWeight,  // gradients of its weights
    kSendForward,
    kRecvForward,
    kSendBackward,
    kRecvBackward,  // with the neighbouring stage
    kReduceGrads,   // wait for all buckets
    kStep,          // clip, optimizer
  };
  Kind kind;
  int64_t micro_batch = -1;
  int64_t chunk = 0;  // virtual stage on this rank
  friend bool operator==(const Action&, const Action&) = default;
};
// "F3", "B3", "SendF3", "ReduceGrads"; with a chunk "F3.1".
std::string ToString(const Action& action);

// A send starts and does not wait for its receiver, a receive waits for its data: under that rule
// no schedule can deadlock. INVALID_ARGUMENT for an unknown kind or a stage outside the spec.
// forward_only: no backward, no reduction, no step (evaluation).
absl::StatusOr<std::vector<Action>> MakeSchedule(const v1::ScheduleSpec& spec, int64_t stage,
                                                 int64_t micro_batches, bool forward_only);

}  // namespace mega::planner
