// Where the seconds of a step went. One thread; phases do not nest (the inner one would be counted
// twice).
//   PhaseTimer timer;
//   { auto time = timer.In(Phase::kForward); … }
//   PhaseSeconds seconds = timer.Take();
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <utility>

namespace mega::profiler {

// Those of v1::PhaseSeconds.
enum class Phase : uint8_t { kData, kForward, kBackward, kReduceExposed, kOptimizer, kEvaluate };
inline constexpr int kPhases = 6;

class PhaseTimer {
 public:
  using Clock = std::chrono::steady_clock;
  using Seconds = std::array<double, kPhases>;  // by Phase

  class Scope {
   public:
    Scope(PhaseTimer& timer, Phase phase) : timer_(timer), phase_(phase) {}
    ~Scope() {
      timer_.seconds_[static_cast<int>(phase_)] +=
          std::chrono::duration<double>(Clock::now() - start_).count();
    }
    Scope(const Scope&) = delete;

   private:
    PhaseTimer& timer_;
    const Phase phase_;
    const Clock::time_point start_ = Clock::now();
  };

  Scope In(Phase phase) { return Scope(*this, phase); }
  double seconds(Phase phase) const { return seconds_[static_cast<int>(phase)]; }
  // Since the last Take.
  Seconds Take() { return std::exchange(seconds_, {}); }

 private:
  Seconds seconds_{};
};

}  // namespace mega::profiler
