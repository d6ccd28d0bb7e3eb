// Users of the jobs' checkpoints, by chance: they pin and delete some, and take a job back to one,
// whatever else goes on. What is refused, or whose answer is lost, they leave at that.
#pragma once

#include "tests/sim/coordinator.h"

namespace mega::sim {

class Users {
 public:
  // Chance of their own: what else happens stays as it was.
  Users(World& world, Coordinator& coordinator, uint64_t seed)
      : world_(world), coordinator_(coordinator), rng_(seed * 3 + 1) {}

  // In some runs.
  void Plan(absl::Duration end);

 private:
  void Ask();

  World& world_;
  Coordinator& coordinator_;
  Rng rng_;
};

}  // namespace mega::sim
