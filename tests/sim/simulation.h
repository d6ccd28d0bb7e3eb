// One run: a small cluster, a few jobs, faults for a while, then none. What is switched on differs
// from seed to seed, so that rare combinations come up.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/core/options.h"
#include "worker/daemon/lease/lease.h"

namespace mega::sim {

class Coordinator;
class Faults;
class Machine;
class World;

// Instead of faults by chance: one job without end on a fleet of one-device machines, for 300 s of
// faults as written.
struct Script {
  int64_t machines = 4;
  int64_t ranks = 3;
  std::function<void(World&, Coordinator&, Faults&, const std::vector<std::unique_ptr<Machine>>&)>
      faults;
};

struct Options {
  const Script* script = nullptr;
  uint64_t seed = 1;
  bool is_traced = false;
  core::Options::Mutants mutants;
  lease::Options::Mutants lease_mutants;
};

struct Result {
  std::optional<std::string> failure;
  std::vector<std::string> trace;
  // What happened, so that a test can tell that something did.
  int64_t events = 0;
  double virtual_seconds = 0;
  int64_t jobs = 0, succeeded = 0, failed = 0, cancelled = 0;
  int64_t attempts = 0, checkpoints = 0, restarts = 0;
  int64_t faults = 0;
  int64_t steps = 0;  // of all jobs, as the coordinator knows
};

Result Simulate(const Options& options);

}  // namespace mega::sim
