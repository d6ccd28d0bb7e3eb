#include "worker/engine/main/stop_signal.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace mega::engine {
namespace {

constexpr std::chrono::milliseconds kStepMayTake(20);

// A process that nothing ends fails the test instead of hanging it.
void AwaitOrDie(const std::atomic<bool>& flag) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!flag) {
    if (std::chrono::steady_clock::now() > deadline) _exit(99);
    std::this_thread::yield();
  }
}

TEST(StopSignal, EndsAProcessThatHasNotBegunToTrain) {
  EXPECT_EXIT(
      {
        const StopSignal stop(kStepMayTake);
        kill(getpid(), SIGTERM);
        const std::atomic<bool> never{false};
        AwaitOrDie(never);
      },
      ::testing::KilledBySignal(SIGTERM), "");
}

TEST(StopSignal, WhileDeferredItAsksAndThenInsists) {
  EXPECT_EXIT(
      {
        StopSignal stop(kStepMayTake);
        std::atomic<bool> asked{false};
        std::atomic<bool> insisted{false};
        {
          const auto deferral = stop.Defer([&] { asked = true; },
                                           [&] {
                                             if (asked) insisted = true;
                                           });
          kill(getpid(), SIGTERM);
          AwaitOrDie(insisted);
        }
        kill(getpid(), SIGTERM);  // once more: noted already
        _exit(stop.came() ? 7 : 8);
      },
      ::testing::ExitedWithCode(7), "");
}

TEST(StopSignal, TheExitSaysWhichSignalItWas) {
  EXPECT_EXIT(
      {
        StopSignal stop(kStepMayTake);
        std::atomic<bool> asked{false};
        const auto deferral = stop.Defer([&] { asked = true; }, [] {});
        kill(getpid(), SIGTERM);
        AwaitOrDie(asked);
        StopSignal::EndProcess();
      },
      ::testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace mega::engine
