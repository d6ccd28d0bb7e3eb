// Each clause of the rules has a deliberate bug that breaks it. A seed under which each is caught
// is listed here; when the simulator changes, the search after it finds another. What chance does
// not bring about in so many seeds is written down as a scenario.
//   sim_test --mutants        only these
#include <algorithm>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "gtest/gtest.h"
#include "tests/sim/scenarios.h"
#include "tests/sim/simulation.h"

namespace mega::sim {
namespace {

constexpr uint64_t kSeeds = 400;  // before a mutant counts as not caught
// A scenario must catch its mutant whatever chance draws; some faults of it come or not by chance.
constexpr uint64_t kScenarioSeedsMin = kScenarioSeeds / 4;

using CaughtBy = std::variant<int64_t, std::string>;  // a seed, or a scenario

struct Mutant {
  std::string name;
  std::string clause;
  CaughtBy caught_by;
  core::Options::Mutants core = {};
  lease::Options::Mutants lease = {};
};

void PrintTo(const Mutant& mutant, std::ostream* out) { *out << mutant.name; }

std::vector<Mutant> AllMutants() {
  return {
      {"skip_fence", "an attempt ends when its last rank has", 4, {.skip_fence = true}},
      {"accept_stale_epoch", "a stale epoch changes nothing", 14, {.accept_stale_epoch = true}},
      {"ignore_priority", "highest priority first", 5, {.ignore_priority = true}},
      {"partial_gang", "all ranks or none", 2, {.partial_gang = true}},
      {"ignore_quota", "a namespace holds at most its quota", 45, {.ignore_quota = true}},
      {"preempt_equals", "victims stand lower", 4, {.preempt_equals = true}},
      {"unfit_blocks", "nobody waits for what can never fit", 2, {.unfit_blocks = true}},
      {"give_lease_early", "ranks are given away after a lease", 1, {.give_lease_early = true}},
      {"no_skew", "and the skew", 2, {.no_skew = true}},
      {"ignore_witnesses",
       "later, without a majority in session",
       "TwoOfThreeWitnessesAreCutOff",
       {.ignore_witnesses = true}},
      {"grace_cut_short",
       "then after the outage grace",
       "TwoOfThreeWitnessesAreCutOff",
       {.grace_cut_short = true}},
      {"one_witness_is_enough",
       "one in session is no majority",
       "TwoOfThreeWitnessesAreCutOff",
       {.one_witness_is_enough = true}},
      {"newest_set_only",
       "of every set since the last acked",
       "ASetDoesNotArrive",
       {.newest_set_only = true}},
      {"empty_set_is_majority", "an empty set is none", 7, {.empty_set_is_majority = true}},
      {"set_before_durable", "a set is durable before it is sent", 1, {.set_before_durable = true}},
      {"renewals_need_no_ack",
       "in session while it acks",
       "WitnessesSpeakAndDoNotHear",
       {.renewals_need_no_ack = true}},
      {"gaps_forgiven",
       "with never half a lease between",
       "WitnessesAreBackWhenItAsks",
       {.gaps_forgiven = true}},
      {"start_not_counted", "afresh from the start", 1, {.start_not_counted = true}},
      {"pause_not_counted", "and from a pause of the loop", 1, {.pause_not_counted = true}},
      {"any_hello_is_proof",
       "only its own successor's hello proves",
       18,
       {.any_hello_is_proof = true}},
      {"forget_unwanted",
       "devices are free when none of their ranks runs",
       "WhatWasKilledIsStillThere",
       {.forget_unwanted = true}},
      {"relay_revives",
       "what was given away is not renewed",
       "ARelayComesWhenTheNodeWasGivenAway",
       {.relay_revives = true}},
      {"no_hang_verdict", "what stands still is ended", 31, {.no_hang_verdict = true}},
      {"silence_is_hang",
       "not what could not speak",
       "ANodeCannotSpeak",
       {.silence_is_hang = true}},
      {"pause_is_hang", "nor what nobody listened to", 89, {.pause_is_hang = true}},
      {"blames_another", "the rank that is missing is named", 31, {.blames_another = true}},
      {"save_after_roll_back",
       "what a job went back behind stays behind",
       "AUserGoesBackWhileItSaves",
       {.save_after_roll_back = true}},
      {"reject_settled",
       "and what was a checkpoint is not taken back",
       "AUserGoesBackBeforeItHearsOfItsCheckpoints",
       {.reject_settled = true}},
      {"remove_of_anybody",
       "a removal leaves what a later attempt has saved",
       "AStepIsSavedAgainBeforeItsRemoval",
       {.remove_of_anybody = true}},
      {"end_uncharged", "every second of a job has one cause", 2, {.end_uncharged = true}},
      {"outlive_lease", "ranks end with the lease", 4, {}, {.outlive_lease = true}},
      {"lease_from_answer",
       "which runs from the sending",
       "RenewalsComeLate",
       {},
       {.lease_from_answer = true}},
      {"run_on_without_majority",
       "a majority must say so",
       "OneOfThreeWitnessesIsCutOff",
       {},
       {.run_on_without_majority = true}},
      {"run_on_from_answer",
       "for one lease from the asking",
       "AnswersComeLate",
       {},
       {.run_on_from_answer = true}},
      {"no_outage_grace",
       "at most the grace past the lease",
       "NobodyHearsForLongerThanTheGrace",
       {},
       {.no_outage_grace = true}},
      {"keep_old_set", "the set that was acked is asked", 1, {}, {.keep_old_set = true}},
      {"old_answers_count",
       "answers are for the set that was asked",
       "AnOldWitnessAnswersForANewSet",
       {},
       {.old_answers_count = true}},
      {"any_process_answers",
       "by the process that was named",
       "WitnessesAreReplacedAndTheNewOnesLoseTheirSession",
       {},
       {.any_process_answers = true}},
      {"eager_witness",
       "no renewal for half a lease + skew",
       "WitnessesDialAgainWhenTheyAreAsked",
       {},
       {.eager_witness = true}},
  };
}

std::optional<std::string> Failure(const Mutant& mutant, uint64_t seed,
                                   const Script* script = nullptr) {
  return Simulate({.script = script,
                   .seed = seed,
                   .mutants = mutant.core,
                   .lease_mutants = mutant.lease})
      .failure;
}

void ExpectCaught(const Mutant& mutant, const std::string& name) {
  const Script& script = FindScenario(name).script;
  std::optional<std::string> first;
  uint64_t caught = 0;
  for (uint64_t seed = 1; seed <= kScenarioSeeds; ++seed) {
    const auto failure = Failure(mutant, seed, &script);
    caught += failure.has_value();
    if (!first) first = failure;
  }
  EXPECT_GE(caught, kScenarioSeedsMin) << "'" << mutant.clause << "' is broken";
  std::cout << mutant.clause << ": " << name << ", " << caught << " of " << kScenarioSeeds
            << " seeds: " << first.value_or("not caught") << "\n";
}

void ExpectCaught(const Mutant& mutant, int64_t listed) {
  if (const auto failure = Failure(mutant, listed)) {
    std::cout << mutant.clause << ": seed " << listed << ": " << *failure << "\n";
    return;
  }
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    if (const auto failure = Failure(mutant, seed)) {
      std::cout << mutant.clause << ": no longer seed " << listed << " but " << seed << ": "
                << *failure << "\n";
      return;
    }
  }
  FAIL() << "'" << mutant.clause << "' is broken and " << kSeeds << " seeds did not notice";
}

class MutantTest : public ::testing::TestWithParam<Mutant> {};

TEST_P(MutantTest, IsCaught) {
  std::visit([](const auto& by) { ExpectCaught(GetParam(), by); }, GetParam().caught_by);
}

// The document says of each clause what catches its bug: on one line the bug and the scenario.
TEST(Mutants, StandInTheDocumentWithWhatCatchesThem) {
  std::ifstream in(MEGA_SOURCE_DIR "/docs/invariants.md");
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  for (const Mutant& mutant : AllMutants()) {
    const auto* scenario = std::get_if<std::string>(&mutant.caught_by);
    const std::string by = scenario ? "`" + *scenario + "`" : "chance";
    EXPECT_TRUE(std::ranges::any_of(lines,
                                    [&](const std::string& line) {
                                      return line.find("`" + mutant.name + "`") != line.npos &&
                                             line.find(by) != line.npos;
                                    }))
        << mutant.name << " is caught by " << by << ", and docs/invariants.md does not say so";
  }
}

INSTANTIATE_TEST_SUITE_P(Clause, MutantTest, ::testing::ValuesIn(AllMutants()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace mega::sim
