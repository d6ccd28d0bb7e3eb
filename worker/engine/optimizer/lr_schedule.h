// Learning rate of a step: linear warm-up, then constant, linear or cosine down to min_lr at the
// last step. Steps count from 1; the rule is Megatron Core's with the count of steps done.
//   step ≤ warmup:  lr · step / warmup
//   after:          min_lr + (lr − min_lr) · f(progress),  progress = (step − warmup) / (steps −
//   warmup)
//                   cosine f = (1 + cos π·progress) / 2 · linear f = 1 − progress · constant: lr
// After the last step min_lr holds (lr for constant).
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "mega/v1/job.pb.h"

namespace mega::optimizer {

class LrSchedule {
 public:
  // From a resolved spec. INVALID_ARGUMENT for an unknown schedule or a warm-up past the end.
  static absl::StatusOr<LrSchedule> Make(const v1::Optimizer& optimizer, int64_t total_steps);

  double At(int64_t step) const;

 private:
  enum class Kind : uint8_t { kConstant, kLinear, kCosine };
  Kind kind_ = Kind::kConstant;
  double lr_ = 0, min_lr_ = 0;
  int64_t warmup_steps_ = 0, total_steps_ = 0;
};

}  // namespace mega::optimizer
