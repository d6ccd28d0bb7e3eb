// One run: a small cluster, a few jobs, faults for a while, then none. What is switched on differs
// from seed to seed, so that rare combinations come up.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "coordinator/core/options.h"
#include "worker/daemon/lease/lease.h"

namespace mega::sim {

class Coordinator;
class Faults;
class Machine;
class World;

// Instead of faults by chance: one job without end on a fleet of one-device machines, and faults as
// written.
struct Script {
  int64_t machines = 4;
  int64_t ranks = 3;
  std::function<void(World&, Coordinator&, Faults&, const std::vector<std::unique_ptr<Machine>>&)>
      faults;
  std::optional<absl::Duration> submit;  // when the job is; unset: by chance, in the first 5 s
  absl::Duration end = absl::Seconds(160);
  std::optional<absl::Duration> node_retention;  // unset: longer than the run
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

// The last lines of a trace.
std::string Tail(const std::vector<std::string>& trace, size_t lines);

}  // namespace mega::sim
