// The real coordinator core and the real lease core in a cluster of virtual machines.
//   sim_test --seeds=500 [--first=1]      so many seeds; a failure prints its own
//   sim_test --seed=N                     that one again, with everything that happened
//   sim_test --mutants                    only the deliberate bugs
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

#include "gtest/gtest.h"
#include "tests/sim/simulation.h"

namespace mega::sim {
namespace {

uint64_t first_seed = 1;
int64_t seeds = 60;
bool is_replay = false;

TEST(Simulation, HoldsItsInvariantsUnderFaults) {
  Result sum;
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < seeds; ++i) {
    const uint64_t seed = first_seed + i;
    Result result = Simulate({.seed = seed, .is_traced = is_replay});
    if (is_replay) std::cout << Tail(result.trace, result.trace.size());
    if (result.failure) {
      const Result again = Simulate({.seed = seed, .is_traced = true});
      FAIL() << "seed " << seed << ": " << *result.failure << "\nreplay: sim_test --seed=" << seed
             << "\nthe end of it:\n"
             << Tail(again.trace, 60);
    }
    sum.events += result.events;
    sum.virtual_seconds += result.virtual_seconds;
    sum.jobs += result.jobs;
    sum.succeeded += result.succeeded;
    sum.failed += result.failed;
    sum.cancelled += result.cancelled;
    sum.attempts += result.attempts;
    sum.checkpoints += result.checkpoints;
    sum.restarts += result.restarts;
    sum.faults += result.faults;
  }
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  std::cout << seeds << " seeds from " << first_seed << ": " << sum.events << " events, "
            << sum.virtual_seconds / 3600 << " cluster hours, " << sum.faults << " faults, "
            << sum.jobs << " jobs (" << sum.succeeded << " succeeded, " << sum.failed << " failed, "
            << sum.cancelled << " cancelled), " << sum.attempts << " attempts, " << sum.restarts
            << " restarts, in " << spent.count() << " s\n";
  if (is_replay || seeds < 20) return;
  // A simulator in which nothing happens holds every invariant.
  EXPECT_GT(sum.succeeded, sum.jobs / 2);
  EXPECT_GT(sum.failed, 0);
  EXPECT_GT(sum.cancelled, 0);
  EXPECT_GT(sum.restarts, sum.jobs / 2);
  EXPECT_GT(sum.checkpoints, sum.jobs);
}

TEST(Simulation, IsTheSameForTheSameSeed) {
  const Result once = Simulate({.seed = 7, .is_traced = true});
  const Result again = Simulate({.seed = 7, .is_traced = true});
  EXPECT_EQ(once.trace, again.trace);
}

}  // namespace

void ParseFlag(std::string_view flag) {
  const auto number = [&](std::string_view name, auto* value) {
    if (!flag.starts_with(name)) return false;
    *value = std::strtoll(std::string(flag.substr(name.size())).c_str(), nullptr, 10);
    return true;
  };
  if (flag == "--mutants") testing::GTEST_FLAG(filter) = "Clause/*";
  number("--seeds=", &seeds);
  number("--first=", &first_seed);
  if (number("--seed=", &first_seed)) {
    seeds = 1;
    is_replay = true;
    testing::GTEST_FLAG(filter) = "Simulation.HoldsItsInvariantsUnderFaults";
  }
}

}  // namespace mega::sim

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) mega::sim::ParseFlag(argv[i]);
  return RUN_ALL_TESTS();
}
