#include <chrono>

#include "gtest/gtest.h"
#include "worker/engine/profiler/peak_flops.h"
#include "worker/engine/profiler/phase_timer.h"

namespace mega::profiler {
namespace {

using Clock = std::chrono::steady_clock;

void Spin(std::chrono::milliseconds span) {
  for (const auto end = Clock::now() + span; Clock::now() < end;) {
  }
}

TEST(PhaseTimer, AddsUpByPhaseUntilTaken) {
  PhaseTimer timer;
  for (int i = 0; i < 2; ++i) {
    const auto time = timer.In(Phase::kForward);
    Spin(std::chrono::milliseconds(2));
  }
  EXPECT_GE(timer.seconds(Phase::kForward), 0.004);
  EXPECT_EQ(timer.seconds(Phase::kBackward), 0);
  EXPECT_GE(timer.Take()[static_cast<int>(Phase::kForward)], 0.004);
  EXPECT_EQ(timer.seconds(Phase::kForward), 0);
}

TEST(PeakFlops, IsPlausibleAndQuick) {
  kernels::Stream stream({}, 1);
  const auto start = Clock::now();
  const double peak = MeasurePeakFlops(stream);
  // Generous, because a loaded machine or a sanitizer may be slow.
  EXPECT_LT(std::chrono::duration<double>(Clock::now() - start).count(), 5);
  EXPECT_GT(peak, 1e7);
  EXPECT_LT(peak, 1e13);
}

}  // namespace
}  // namespace mega::profiler
