#include "cli/commands/follow.h"

#include <algorithm>

#include "absl/time/clock.h"

namespace mega::cli {

bool Pause::Wait() {
  if (waited_ >= kFollowPatience) return false;
  absl::SleepFor(next_);
  waited_ += next_;
  next_ = std::min(next_ * 2, absl::Seconds(2));
  return true;
}

void Pause::Reset() { *this = Pause(); }

}  // namespace mega::cli
