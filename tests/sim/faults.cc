#include "tests/sim/faults.h"

#include <algorithm>

namespace mega::sim {

std::vector<std::function<void()>> Faults::Kinds() {
  return {
      [this] { coordinator_.CrashFor(Span(0.05, 20)); },
      [this] { coordinator_.CrashFor(Span(10, 90)); },
      [this] { coordinator_.PauseFor(Span(0.2, 20)); },
      [this] { coordinator_.StepWallClock(absl::Hours(world_.rng.Between(-1, 1))); },
      [this] { Any().KillWorker(Span(0.1, 30)); },
      [this] { Any().LeaveWorker(Span(0.5, 20)); },
      [this] { Any().Reboot(Span(1, 60)); },
      [this] { Any().PauseWorker(Span(0.5, 30)); },
      [this] { Any().PauseMachine(Span(0.5, 60)); },
      [this] { AnyBusy().KillEngine(); },
      [this] { AnyBusy().KillEngine(); },
      [this] { Any().ResetConnection(); },
      [this] { Hold(Any(), true, false, Span(0.5, 40)); },
      [this] { Hold(Any(), false, true, Span(0.5, 40)); },
      [this] { Hold(Any(), true, true, Span(0.5, 40)); },
      [this] { CutPeers(Any(), Any(), Span(0.5, 40)); },
      [this] { Isolate(Any(), Span(0.5, 60)); },
      [this] { Partition(Span(0.5, 60)); },
      [this] { SwizzleClog(); },
      [this] { Flap(Any(), Span(5, 30)); },
      [this] { LoseRack(Span(1, 40)); },
      [this] { AnyBusy().StickEngine(); },
  };
}

Machine& Faults::AnyBusy() {
  std::vector<Machine*> busy;
  for (const auto& machine : machines_) {
    if (!machine->LiveEngines().empty()) busy.push_back(machine.get());
  }
  return busy.empty() ? Any() : *busy[world_.rng.Below(std::ssize(busy))];
}

// Cuts, outages and restarts as long as a lease or half of one, many at a time: what the clauses of
// the lease rule differ by.
void Faults::PlanCuts(absl::Duration end) {
  const std::vector<std::function<void()>> kinds = {
      [this] { Isolate(Any(), Span(3, 25)); },
      [this] { Hold(Any(), true, false, Span(3, 25)); },
      [this] { Hold(Any(), false, true, Span(3, 25)); },
      [this] { Hold(Any(), true, true, Span(3, 25)); },
      [this] { CutPeers(Any(), Any(), Span(3, 25)); },
      [this] { Partition(Span(3, 25)); },
      [this] { coordinator_.CrashFor(Span(0.5, 20)); },
      [this] { coordinator_.PauseFor(Span(0.5, 15)); },
      [this] { Any().KillWorker(Span(0.1, 5)); },
      [this] { Any().PauseWorker(Span(1, 15)); },
      [this] { Any().PauseMachine(Span(1, 15)); },
  };
  planned_ += world_.rng.Between(10, 40);
  for (int64_t i = 0; i < planned_; ++i) {
    world_.At(world_.rng.Between(absl::Seconds(5), end),
              kinds[world_.rng.Below(std::ssize(kinds))]);
  }
}

void Faults::Plan(absl::Duration end) {
  if (world_.rng.Chance(0.3)) return PlanCuts(end);
  for (const auto& kind : Kinds()) {
    if (!world_.rng.Chance(0.3)) continue;
    const int64_t count = world_.rng.Between(1, 10);
    for (int64_t i = 0; i < count; ++i) {
      ++planned_;
      world_.At(world_.rng.Between(absl::Seconds(1), end), kind);
    }
  }
}

void Faults::Hold(Machine& machine, bool up, bool down, absl::Duration span) {
  if (is_over_) return;
  const absl::Duration until = world_.now() + span;
  world_.Trace("{}: held up for {} ({}{})", machine.address(), absl::FormatDuration(span),
               up ? "up " : "", down ? "down" : "");
  if (up) machine.up_held_until = std::max(machine.up_held_until, until);
  if (down) machine.down_held_until = std::max(machine.down_held_until, until);
}

void Faults::CutPeers(const Machine& from, const Machine& to, absl::Duration span) {
  if (is_over_ || from.address() == to.address()) return;
  world_.Trace("{} is not heard by {} for {}", from.address(), to.address(),
               absl::FormatDuration(span));
  network_.CutPeers(from.address(), to.address(), world_.now() + span);
}

void Faults::HoldPeers(const Machine& from, const Machine& to, absl::Duration span) {
  world_.Trace("{} is heard late by {}: after {}", from.address(), to.address(),
               absl::FormatDuration(span));
  network_.HoldPeers(from.address(), to.address(), world_.now() + span);
}

void Faults::Isolate(Machine& machine, absl::Duration span) {
  Hold(machine, true, true, span);
  for (const auto& other : machines_) {
    CutPeers(machine, *other, span);
    CutPeers(*other, machine, span);
  }
}

void Faults::Partition(absl::Duration span) {
  std::vector<bool> is_near;  // on the coordinator's side
  for (size_t i = 0; i < machines_.size(); ++i) is_near.push_back(world_.rng.Chance(0.5));
  const int64_t shape = world_.rng.Below(4);  // 0, 1: both ways
  const bool out = shape != 3, in = shape != 2;
  for (size_t i = 0; i < machines_.size(); ++i) {
    if (is_near[i]) continue;
    Hold(*machines_[i], in, out, span);
    for (size_t j = 0; j < machines_.size(); ++j) {
      if (!is_near[j]) continue;
      if (in) CutPeers(*machines_[i], *machines_[j], span);
      if (out) CutPeers(*machines_[j], *machines_[i], span);
    }
  }
}

void Faults::SwizzleClog() {
  world_.Trace("swizzle-clog");
  for (const auto& machine : machines_) {
    if (world_.rng.Chance(0.5)) continue;
    const absl::Duration begin = Span(0, 20), end = Span(20, 50);
    world_.After(begin,
                 [this, machine = machine.get(), span = end - begin] { Isolate(*machine, span); });
  }
}

void Faults::Flap(Machine& machine, absl::Duration span) {
  const absl::Duration off = Span(0.3, 1.5), on = Span(0.3, 1.5);
  const bool up = world_.rng.Chance(0.7), down = !up || world_.rng.Chance(0.5);
  for (absl::Duration at; at < span; at += off + on) {
    world_.After(at, [this, &machine, up, down, off] { Hold(machine, up, down, off); });
  }
}

void Faults::LoseRack(absl::Duration span) {
  const std::string rack = Any().rack();
  const bool is_power = world_.rng.Chance(0.5);
  world_.Trace("rack {} is lost", rack);
  for (const auto& machine : machines_) {
    if (machine->rack() != rack) continue;
    if (is_power) {
      machine->Reboot(span);
    } else {
      Isolate(*machine, span);
    }
  }
}

}  // namespace mega::sim
