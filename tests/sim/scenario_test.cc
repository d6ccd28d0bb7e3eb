// The right code holds every invariant in each scenario, whatever the delays, the clocks' rates and
// the heartbeats' phases are.
#include "gtest/gtest.h"
#include "tests/sim/scenarios.h"

namespace mega::sim {
namespace {

class ScenarioTest : public ::testing::TestWithParam<Scenario> {};

TEST_P(ScenarioTest, HoldsTheInvariants) {
  const Script& script = GetParam().script;
  for (uint64_t seed = 1; seed <= kScenarioSeeds; ++seed) {
    const Result result = Simulate({.script = &script, .seed = seed});
    if (!result.failure) continue;
    const Result again = Simulate({.script = &script, .seed = seed, .is_traced = true});
    FAIL() << "seed " << seed << ": " << *result.failure << "\nthe end of it:\n"
           << Tail(again.trace, 80);
  }
}

INSTANTIATE_TEST_SUITE_P(Written, ScenarioTest, ::testing::ValuesIn(Scenarios()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace mega::sim
