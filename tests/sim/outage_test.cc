// What a fault of the control plane costs a job that runs: faults as written, the real cores.
#include "gtest/gtest.h"
#include "tests/sim/faults.h"
#include "tests/sim/simulation.h"

namespace mega::sim {
namespace {

using Machines = std::vector<std::unique_ptr<Machine>>;

// Whatever the delays and the clocks' rates are.
void ExpectNoStepLost(const Script& script) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Result result = Simulate({.script = &script, .seed = seed});
    ASSERT_FALSE(result.failure) << "seed " << seed << ": " << *result.failure;
    EXPECT_EQ(result.attempts, 1) << "seed " << seed;
    EXPECT_GT(result.steps, 300) << "seed " << seed
                                 << ": a job that stands still loses none either";
  }
}

TEST(Outage, OfTheCoordinatorWithinTheGraceCostsNoStep) {
  for (const int64_t machines : {1, 2, 4, 7}) {
    ExpectNoStepLost(
        {.machines = machines,
         .ranks = machines,
         .faults = [](World& world, Coordinator& coordinator, Faults&, const Machines&) {
           world.At(absl::Seconds(40), [&coordinator] { coordinator.CrashFor(absl::Seconds(18)); });
           world.At(absl::Seconds(100),
                    [&coordinator] { coordinator.PauseFor(absl::Seconds(18)); });
         }});
  }
}

TEST(Outage, OneNodeCutFromTheCoordinatorOnlyIsRenewedThroughAWitness) {
  ExpectNoStepLost(
      {.faults = [](World& world, Coordinator&, Faults& faults, const Machines& machines) {
        world.At(absl::Seconds(30), [&] {
          faults.Hold(*machines[0], true, true, absl::Seconds(100));
          faults.Hold(*machines[1], false, true, absl::Seconds(80));
        });
      }});
}

TEST(Outage, AShortCutFromEverybodyCostsNoStep) {
  ExpectNoStepLost(
      {.faults = [](World& world, Coordinator&, Faults& faults, const Machines& machines) {
        world.At(absl::Seconds(30), [&] { faults.Isolate(*machines[0], absl::Seconds(4)); });
      }});
}

TEST(Outage, ANodeCutFromEverybodyEndsItsRanksAndTheJobGoesOnElsewhere) {
  const Script script = {
      .faults = [](World& world, Coordinator&, Faults& faults, const Machines& machines) {
        world.At(absl::Seconds(30), [&] { faults.Isolate(*machines[0], absl::Seconds(100)); });
      }};
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Result result = Simulate({.script = &script, .seed = seed});
    ASSERT_FALSE(result.failure) << "seed " << seed << ": " << *result.failure;
    EXPECT_LE(result.attempts, 2) << "seed " << seed;
    EXPECT_GT(result.steps, 300) << "seed " << seed;
  }
}

TEST(Outage, ARestartWhileANodeIsDeadWaitsForALeaseAndNotForTheGrace) {
  const Script script = {
      .faults = [](World& world, Coordinator& coordinator, Faults&, const Machines& machines) {
        world.At(absl::Seconds(30), [&] {
          machines[0]->Retire();
          coordinator.CrashFor(absl::Seconds(2));
        });
        world.At(absl::Seconds(50), [&] {
          const v1::Node& node = coordinator.state().durable.nodes.at("node0");
          if (node.state() != v1::NODE_STATE_LOST)
            world.Fail("the job waits for a node that is gone");
        });
      }};
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Result result = Simulate({.script = &script, .seed = seed});
    ASSERT_FALSE(result.failure) << "seed " << seed << ": " << *result.failure;
  }
}

}  // namespace
}  // namespace mega::sim
