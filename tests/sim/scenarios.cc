// Node 0 runs what is at stake; 1, 2 and 3 are its witnesses, {1, 2, 3} the set that it holds when
// the faults begin. Heartbeats leave each second, at a phase of chance; a lease is 10 s, so that
// node 0, cut off at 30, asks at some time of each second from 34 on until its lease ends, at 39 to
// 40; and the coordinator gives it away at 40 to 41.3 if its witnesses were in session, else after
// a grace of 20 to 60 s. A witness that is cut off at 30 says so from 35 or 36 on.
#include "tests/sim/scenarios.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "tests/sim/faults.h"

namespace mega::sim {
namespace {

enum class Fault {
  kCut,         // mute and deaf
  kMute,        // what the node says to the coordinator comes at the end, all at once
  kDeaf,        // likewise what the coordinator says to the node
  kUnasked,     // what other workers say to the node is lost
  kLate,        // what the node says to node 0 comes at the end
  kReset,       // its session breaks, and it dials again 0.2 to 3 s later
  kStopped,     // its worker does nothing
  kRestarted,   // its worker is killed, and another one started at the end
  kDiesSlowly,  // what is killed there stays until the end, doing nothing, and holds its device
  kFailsLate,   // it says that ranks that have ended could not save
  kRefuses,     // its disk refuses to remove anything
  // Of no node.
  kGoBack,  // a user takes the job back to the oldest checkpoint that it has, or to its beginning
  kDeleteNewest,  // a user deletes its newest checkpoint
};
using enum Fault;

struct Line {
  double from, to;  // seconds
  Fault fault;
  std::vector<size_t> nodes;
};

void GoBack(Coordinator& coordinator) {
  const auto& [uid, job] = *coordinator.stored().durable.jobs.begin();
  v1::CoreRequest request;
  request.set_uid(uid);
  if (job.checkpoints().empty()) {
    request.mutable_restart_job()->set_from_beginning(true);
  } else {
    request.mutable_restart_job()->set_from_step(job.checkpoints(0).step());
  }
  coordinator.Ask(std::move(request), [](const v1::ReplyCall&) {});
}

void DeleteNewest(Coordinator& coordinator) {
  const auto& [uid, job] = *coordinator.stored().durable.jobs.begin();
  MEGA_CHECK(!job.checkpoints().empty());
  v1::CoreRequest request;
  request.set_uid(uid);
  request.mutable_delete_checkpoint()->set_step(job.checkpoints().rbegin()->step());
  request.mutable_delete_checkpoint()->set_force(true);
  coordinator.Ask(std::move(request), [](const v1::ReplyCall&) {});
}

void Begin(const Line& line, size_t node, Coordinator& coordinator, Faults& faults,
           const Faults::Machines& machines) {
  const absl::Duration span = absl::Seconds(line.to - line.from);
  Machine& machine = *machines[node];
  switch (line.fault) {
    case kCut:
      return faults.Hold(machine, /*up=*/true, /*down=*/true, span);
    case kMute:
      return faults.Hold(machine, /*up=*/true, /*down=*/false, span);
    case kDeaf:
      return faults.Hold(machine, /*up=*/false, /*down=*/true, span);
    case kUnasked:
      for (const auto& other : machines) faults.CutPeers(*other, machine, span);
      return;
    case kLate:
      return faults.HoldPeers(machine, *machines[0], span);
    case kReset:
      return machine.ResetConnection();
    case kStopped:
      return machine.PauseWorker(span);
    case kRestarted:
      return machine.KillWorker(span);
    case kDiesSlowly:
      return machine.DieSlowly(span);
    case kFailsLate:
      return machine.SayOldSavesFailed();
    case kRefuses:
      return machine.RefuseRemovals(span);
    case kGoBack:
      return GoBack(coordinator);
    case kDeleteNewest:
      return DeleteNewest(coordinator);
  }
}

struct Setting {
  int64_t ranks = 1;  // of four nodes with a device each; the first has its place on node 0
  double submit = 10;
  std::optional<absl::Duration> node_retention = {};
};

Scenario Make(std::string name, const std::vector<Line>& lines, Setting setting = {}) {
  Script script;
  script.ranks = setting.ranks;
  script.submit = absl::Seconds(setting.submit);
  script.node_retention = setting.node_retention;
  double last = 0;
  for (const Line& line : lines) last = std::max(last, line.to);
  script.end = absl::Seconds(last + 20);
  script.faults = [lines](World& world, Coordinator& coordinator, Faults& faults,
                          const Faults::Machines& machines) {
    for (const Line& line : lines) {
      for (const size_t node : line.nodes) {
        world.At(absl::Seconds(line.from), [=, &coordinator, &faults, &machines] {
          Begin(line, node, coordinator, faults, machines);
        });
      }
    }
  };
  return {std::move(name), std::move(script)};
}

std::vector<Scenario> Write() {
  return {
      // For the coordinator that is no majority in session, and then there is the whole grace.
      Make("TwoOfThreeWitnessesAreCutOff", {{30, 80, kCut, {0, 1, 2}},  //
                                            {30, 80, kUnasked, {3}}}),
      // And for node 0 no majority without.
      Make("OneOfThreeWitnessesIsCutOff", {{30, 70, kCut, {0, 3}},  //
                                           {30, 70, kUnasked, {1, 2}}}),
      // When its lease is nearly over, node 0 hears that the heartbeat of 30 was answered.
      Make("RenewalsComeLate", {{30, 38.5, kDeaf, {0}},  //
                                {31, 70, kMute, {0}},
                                {30, 70, kUnasked, {1, 2, 3}}}),
      // The next set is {3}, which is in session; but node 0 does not hear of it, and asks 1 and 2.
      Make("ASetDoesNotArrive", {{28, 70, kCut, {1, 2}},
                                 {28, 38.4, kStopped, {1, 2}},  // or node 0 would relay for them
                                 {30, 70, kDeaf, {0}},
                                 {33, 38.5, kMute, {0}},  // it gets a set when both have left
                                 {40, 70, kMute, {0}},
                                 {28, 70, kUnasked, {3}}}),
      // The coordinator hears of its witnesses every second, and they hear nothing of it: they let
      // node 0 run on.
      Make("WitnessesSpeakAndDoNotHear", {{30, 70, kCut, {0}},  //
                                          {30, 70, kDeaf, {1, 2, 3}}}),
      // All are cut off, node 0 is told to run on until 47 or 48, and then its witnesses are back
      // in session, as if they had never lost it.
      Make("WitnessesAreBackWhenItAsks", {{30, 70, kCut, {0}},
                                          {30, 38.7, kCut, {1, 2, 3}},
                                          {30, 36.2, kUnasked, {1, 2, 3}},  // no relay
                                          {38.2, 70, kUnasked, {1, 2, 3}}}),
      // For longer than any grace nobody hears of the coordinator.
      Make("NobodyHearsForLongerThanTheGrace", {{30, 115, kCut, {0, 1, 2, 3}}}),
      // Two witnesses restart, and the new processes lose their session with the first renewal, at
      // 31.5; node 0 does not know them. For the coordinator the old ones, which are gone, were in
      // session to their end, and so the set was.
      Make("WitnessesAreReplacedAndTheNewOnesLoseTheirSession", {{29.8, 70, kCut, {0}},
                                                                 {29.9, 31.5, kDeaf, {1, 2}},
                                                                 {30, 30.1, kRestarted, {1, 2}},
                                                                 {31, 70, kMute, {1, 2}},
                                                                 {30, 70, kUnasked, {3}}}),
      // All witnesses are between two sessions when node 0 asks, as its worker goes on; they lack
      // no renewal.
      Make("WitnessesDialAgainWhenTheyAreAsked", {{30, 70, kCut, {0}},
                                                  {33, 36.05, kStopped, {0}},
                                                  {36, 36, kReset, {1, 2, 3}},
                                                  {36.15, 70, kUnasked, {1, 2, 3}}}),
      // A majority had no session when it was asked at 38, has one from 39 on, and its answers of
      // before come at 44.5.
      Make("AnswersComeLate", {{30, 70, kCut, {0}},
                               {30, 39, kCut, {1, 2, 3}},
                               {30, 36.2, kUnasked, {1, 2, 3}},  // no relay
                               {37.5, 44.5, kLate, {1, 2, 3}},
                               {38.8, 70, kUnasked, {1, 2, 3}}}),
      // Of {1, 2, 3} the third is long cut off; the second restarts and hears nothing, so that the
      // next set is {1}. Node 0 asks the third at 35, has {1} at 36.2, and the answer of the third
      // at 38: a majority of one. But 1 and 2 were in session, as far as it matters.
      Make("AnOldWitnessAnswersForANewSet",
           {{22.2, 70, kCut, {3}},
            {22.2, 33.5, kStopped, {3}},  // or 1 would relay for it
            {27.9, 32.8, kMute, {0}},     // once more in between, so
            {32.9, 70, kMute, {0}},       // that it gets a set
            {27.9, 36.2, kDeaf, {0}},
            {27.9, 70, kUnasked, {1, 2}},
            {31, 70, kDeaf, {2}},
            {31.3, 31.4, kRestarted, {2}},
            {34, 38, kLate, {3}}}),
      // An order to start is on its way to node 0 when it is cut off. It asks for a renewal through
      // node 1, which can speak only when node 0 has been given away and the rank has been started
      // elsewhere; then the order arrives.
      Make("ARelayComesWhenTheNodeWasGivenAway",
           {{29.9, 44, kDeaf, {0}},
            {30.3, 70, kMute, {0}},
            {29.9, 37.6, kUnasked, {1}},
            {29.9, 70, kUnasked, {2, 3}},
            {37.5, 43, kMute, {1}}},
           {.submit = 30}),
      // Node 0 was given away, comes back, and what it had killed is still there. The job wants its
      // device.
      Make("WhatWasKilledIsStillThere",
           {{30, 45, kCut, {0}}, {30, 45, kUnasked, {1, 2, 3}}, {30, 90, kDiesSlowly, {0}}},
           {.ranks = 4}),
      // Node 3 is lost, and forgotten at the next full minute; the job waits for another, and what
      // node 0 says of its last attempt would have to be passed on to node 3.
      Make("ASaveFailsWhenAPeerIsForgotten",
           {{30, 250, kCut, {3}}, {30, 250, kUnasked, {0, 1, 2}}, {200, 240, kFailsLate, {0}}},
           {.ranks = 4, .node_retention = absl::Seconds(10)}),
      // What node 0 saves from 30 on is told at 38, when its rank has been ended since 35.
      Make("AUserGoesBackWhileItSaves", {{30, 38, kMute, {0}}, {35, 35, kGoBack, {0}}},
           {.ranks = 2}),
      // Node 0 does not hear from 30 on what was committed, and tells its parts again at 36.
      Make("AUserGoesBackBeforeItHearsOfItsCheckpoints",
           {{30, 38, kDeaf, {0}}, {34, 34, kGoBack, {0}}, {35, 35, kReset, {0}}}, {.ranks = 2}),
      // Node 0 carries out its order when the job has come by the step again.
      Make("AStepIsSavedAgainBeforeItsRemoval",
           {{20, 65, kRefuses, {0}}, {30, 30, kDeleteNewest, {0}}, {30.2, 30.2, kGoBack, {0}}},
           {.ranks = 2}),
      // It is renewed through its witnesses, its rank steps on, and nobody hears of that.
      Make("ANodeCannotSpeak", {{30, 95, kMute, {0}}}),
  };
}

}  // namespace

const std::vector<Scenario>& Scenarios() {
  static const auto* const scenarios = new std::vector<Scenario>(Write());
  return *scenarios;
}

const Scenario& FindScenario(const std::string& name) {
  const auto found = std::ranges::find(Scenarios(), name, &Scenario::name);
  MEGA_CHECK(found != Scenarios().end());
  return *found;
}

}  // namespace mega::sim
