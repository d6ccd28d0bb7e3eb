#include "worker/engine/optimizer/lr_schedule.h"

#include <cmath>
#include <numbers>

namespace mega::optimizer {

absl::StatusOr<LrSchedule> LrSchedule::Make(const v1::Optimizer& optimizer, int64_t total_steps) {
  LrSchedule schedule;
  if (optimizer.schedule() == "cosine") {
    schedule.kind_ = Kind::kCosine;
  } else if (optimizer.schedule() == "linear") {
    schedule.kind_ = Kind::kLinear;
  } else if (optimizer.schedule() == "constant") {
    schedule.kind_ = Kind::kConstant;
  } else {
    return InvalidArgument("optimizer.schedule is \"{}\"; choose cosine, linear or constant",
                           optimizer.schedule());
  }
  if (optimizer.warmup_steps() > total_steps)
    return InvalidArgument(
        "optimizer.warmup_steps is {} but the job has {} steps; choose at most that",
        optimizer.warmup_steps(), total_steps);
  if (optimizer.min_lr() > optimizer.lr())
    return InvalidArgument("optimizer.min_lr is {} but optimizer.lr is {}; choose at most that",
                           optimizer.min_lr(), optimizer.lr());
  schedule.lr_ = optimizer.lr();
  schedule.min_lr_ = optimizer.min_lr();
  schedule.warmup_steps_ = optimizer.warmup_steps();
  schedule.total_steps_ = total_steps;
  return schedule;
}

double LrSchedule::At(int64_t step) const {
  if (warmup_steps_ > 0 && step <= warmup_steps_)
    return lr_ * static_cast<double>(step) / static_cast<double>(warmup_steps_);
  if (kind_ == Kind::kConstant) return lr_;
  if (step > total_steps_) return min_lr_;
  const int64_t span = total_steps_ - warmup_steps_;
  const double progress =
      span > 0 ? static_cast<double>(step - warmup_steps_) / static_cast<double>(span) : 1;
  const double share =
      kind_ == Kind::kLinear ? 1 - progress : 0.5 * (1 + std::cos(std::numbers::pi * progress));
  return min_lr_ + share * (lr_ - min_lr_);
}

}  // namespace mega::optimizer
