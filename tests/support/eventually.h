// A wait for what other threads or processes do: a poll with a deadline, not a synchronisation.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace mega::testing {

// False: `condition` did not hold within `span`.
inline bool EventuallyWithin(absl::Duration span, const std::function<bool()>& condition) {
  const absl::Time deadline = absl::Now() + span;
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace mega::testing
