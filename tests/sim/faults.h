// The fault menu. Each kind is on or off for a whole run, and comes at random times if on.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/sim/coordinator.h"
#include "tests/sim/machine.h"

namespace mega::sim {

class Faults {
 public:
  using Machines = std::vector<std::unique_ptr<Machine>>;
  Faults(World& world, Network& network, Coordinator& coordinator, const Machines& machines)
      : world_(world), network_(network), coordinator_(coordinator), machines_(machines) {}

  void Plan(absl::Duration end);
  int64_t planned() const { return planned_; }
  // Those that go on over some time come to nothing from now on.
  void Stop() { is_over_ = true; }

  // One of each, for runs with a script.
  // The streams of a machine to the coordinator and back stand still: nothing arrives, and then all
  // of it at once.
  void Hold(Machine& machine, bool up, bool down, absl::Duration span);
  // Nothing arrives from one machine at another.
  void CutPeers(const Machine& from, const Machine& to, absl::Duration span);
  // What one machine says to another arrives only when the time is over.
  void HoldPeers(const Machine& from, const Machine& to, absl::Duration span);
  // From everybody else, coordinator or not.
  void Isolate(Machine& machine, absl::Duration span);
  // A cut through the cluster, with the coordinator on one side; both ways, or only from the
  // coordinator's side, or only to it.
  void Partition(absl::Duration span);
  // Links of some machines stop one by one and come back in another order.
  void SwizzleClog();
  // On and off about as often as heartbeats leave.
  void Flap(Machine& machine, absl::Duration span);
  // All machines of a rack lose power, or all their links.
  void LoseRack(absl::Duration span);

 private:
  std::vector<std::function<void()>> Kinds();
  void PlanCuts(absl::Duration end);
  absl::Duration Span(double low_seconds, double high_seconds) {
    return world_.rng.Between(absl::Seconds(low_seconds), absl::Seconds(high_seconds));
  }
  Machine& AnyBusy();  // one on which ranks run, if there is any
  Machine& Any() { return *machines_[world_.rng.Below(std::ssize(machines_))]; }

  World& world_;
  Network& network_;
  Coordinator& coordinator_;
  const Machines& machines_;
  int64_t planned_ = 0;
  bool is_over_ = false;
};

}  // namespace mega::sim
