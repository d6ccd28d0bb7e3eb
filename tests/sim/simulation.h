// One run: a small cluster, a few jobs, faults for a while, then none. What is switched on differs
// from seed to seed, so that rare combinations come up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/core/options.h"

namespace mega::sim {

struct Options {
  uint64_t seed = 1;
  bool is_traced = false;
  core::Options::Mutants mutants;
  bool mutant_outlive_lease = false;
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
};

Result Simulate(const Options& options);

}  // namespace mega::sim
