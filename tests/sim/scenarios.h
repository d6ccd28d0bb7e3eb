// Faults as written, for the clauses whose violation chance does not bring about: the real cores
// hold every invariant in each, and the deliberate bug that names it in mutants_test.cc breaks one.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "tests/sim/simulation.h"

namespace mega::sim {

struct Scenario {
  std::string name;
  Script script;
};
inline void PrintTo(const Scenario& scenario, std::ostream* out) { *out << scenario.name; }

const std::vector<Scenario>& Scenarios();
// Each runs under so many seeds: chance still draws delays, the rates of clocks, phases, the grace.
inline constexpr uint64_t kScenarioSeeds = 20;
const Scenario& FindScenario(const std::string& name);

}  // namespace mega::sim
