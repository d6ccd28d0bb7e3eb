#include "tests/sim/simulation.h"

#include <functional>
#include <memory>

#include "tests/sim/client.h"
#include "tests/sim/coordinator.h"
#include "tests/sim/machine.h"

namespace mega::sim {
namespace {

// Faults stop after this; then everything must come to an end within that.
constexpr absl::Duration kFaultsMax = absl::Seconds(300);
constexpr absl::Duration kHealedMax = absl::Seconds(1800);

class Simulation {
 public:
  explicit Simulation(const Options& options)
      : world_(options.seed, options.is_traced),
        network_(world_, NetworkOptions()),
        invariants_(world_),
        coordinator_(world_, network_, invariants_, CoreOptions(options), CoordinatorFaults()) {
    const int64_t machines = world_.rng.Between(1, 4);
    int64_t devices = 0;
    const bool workers_crash = Half();
    for (int64_t i = 0; i < machines; ++i) {
      Machine::Options machine;
      machine.name = fmt::format("node{}", i);
      machine.devices = world_.rng.Between(1, 3);
      // 10 s of lease at most 0.5 s wrong; the skew is 1 s.
      machine.clock_rate = 1 + (world_.rng.Unit() - 0.5) * 0.1;
      machine.lease.mutant_outlive_lease = options.mutant_outlive_lease;
      machine.crash_chance = workers_crash ? 0.01 : 0;
      machine.permanent_exit_chance = 0.15;
      devices += machine.devices;
      machines_.push_back(std::make_unique<Machine>(world_, network_, coordinator_, invariants_,
                                                    std::move(machine)));
    }
    const int64_t jobs = world_.rng.Between(1, 6);
    for (int64_t i = 0; i < jobs; ++i) {
      clients_.push_back(std::make_unique<Client>(world_, coordinator_, invariants_,
                                                  fmt::format("job{}", i),
                                                  world_.rng.Between(1, devices)));
    }
  }

  Result Run() {
    const absl::Duration faults_end = world_.rng.Between(absl::Seconds(20), kFaultsMax);
    coordinator_.Start();
    for (auto& machine : machines_) {
      world_.At(world_.rng.Between(absl::ZeroDuration(), absl::Seconds(3)),
                [&machine] { machine->Boot(); });
    }
    for (auto& client : clients_) client->Start();
    PlanFaults(faults_end);
    world_.RunUntil(faults_end);
    world_.Trace("------ no more faults");
    network_.Heal();
    coordinator_.Heal();
    for (auto& machine : machines_) machine->Heal();
    invariants_.CheckIndex(coordinator_.state());
    world_.RunUntil(faults_end + kHealedMax, [this] { return IsOver(); });
    if (!world_.failure()) CheckEnd();
    return Sum();
  }

 private:
  bool Half() { return world_.rng.Chance(0.5); }

  Network::Options NetworkOptions() {
    Network::Options options;
    options.delay_max = Half() ? absl::Milliseconds(5) : absl::Milliseconds(500);
    options.slow_chance = Half() ? 0.02 : 0;
    options.duplicate_chance = Half() ? 0.03 : 0;
    return options;
  }

  static core::Options CoreOptions(const Options& options) {
    core::Options core;
    core.mutants = options.mutants;
    return core;
  }

  Coordinator::Faults CoordinatorFaults() {
    return {.slow_sync_chance = Half() ? 0.05 : 0, .crash_chance = Half() ? 0.003 : 0};
  }

  // Each kind is on or off for the whole run, and comes at random times if on.
  void PlanFaults(absl::Duration end) {
    const std::vector<std::function<void()>> kinds = {
        [this] { coordinator_.CrashFor(Span(0.05, 20)); },
        [this] { coordinator_.PauseFor(Span(0.2, 20)); },
        [this] { coordinator_.StepWallClock(absl::Hours(world_.rng.Between(-1, 1))); },
        [this] { Any().KillWorker(Span(0.1, 30)); },
        [this] { Any().LeaveWorker(Span(0.5, 20)); },
        [this] { Any().Reboot(Span(1, 60)); },
        [this] { Any().PauseWorker(Span(0.5, 30)); },
        [this] { Any().PauseMachine(Span(0.5, 60)); },
        [this] { Any().KillEngine(); },
        [this] { Any().KillEngine(); },
        [this] { Any().ResetConnection(); },
        [this] { Hold(Any(), true, false); },
        [this] { Hold(Any(), false, true); },
        [this] { Hold(Any(), true, true); },
    };
    for (const auto& kind : kinds) {
      if (!world_.rng.Chance(0.4)) continue;
      const int64_t count = world_.rng.Between(1, 10);
      for (int64_t i = 0; i < count; ++i) {
        ++faults_;
        world_.At(world_.rng.Between(absl::Seconds(1), end), kind);
      }
    }
  }

  // A partition, one way or both: nothing arrives, and then all of it at once.
  void Hold(Machine& machine, bool up, bool down) {
    const absl::Duration until = world_.now() + Span(0.5, 40);
    world_.Trace("{}: held up for {} ({}{})", machine.name(),
                 absl::FormatDuration(until - world_.now()), up ? "up " : "", down ? "down" : "");
    if (up) machine.up_held_until = std::max(machine.up_held_until, until);
    if (down) machine.down_held_until = std::max(machine.down_held_until, until);
  }

  absl::Duration Span(double low_seconds, double high_seconds) {
    return world_.rng.Between(absl::Seconds(low_seconds), absl::Seconds(high_seconds));
  }
  Machine& Any() { return *machines_[world_.rng.Below(std::ssize(machines_))]; }

  bool IsOver() const {
    for (const auto& client : clients_) {
      if (!client->IsDone()) return false;
    }
    return coordinator_.is_alive() && coordinator_.stored().index.unfinished.empty();
  }

  void CheckEnd() {
    invariants_.CheckIndex(coordinator_.state());
    invariants_.CheckIndex(coordinator_.stored());
    if (IsOver()) {
      if (!coordinator_.state().index.device_owner.empty()) {
        world_.Fail("all jobs have ended, and devices are still in use");
      }
      return;
    }
    for (const core::JobUid& uid : coordinator_.state().index.unfinished) {
      const v1::Job& job = coordinator_.state().durable.jobs.at(uid);
      world_.Fail("{} after the last fault job {} is still {}: {}",
                  absl::FormatDuration(kHealedMax), uid, v1::JobPhase_Name(job.phase()),
                  job.reason());
    }
    world_.Fail("a client never got its answer");
  }

  Result Sum() {
    Result result{.failure = world_.failure(),
                  .trace = world_.trace(),
                  .events = world_.events(),
                  .virtual_seconds = absl::ToDoubleSeconds(world_.now()),
                  .faults = faults_};
    for (const auto& [uid, job] : coordinator_.stored().durable.jobs) {
      ++result.jobs;
      result.succeeded += job.phase() == v1::JOB_PHASE_SUCCEEDED;
      result.failed += job.phase() == v1::JOB_PHASE_FAILED;
      result.cancelled += job.phase() == v1::JOB_PHASE_CANCELLED;
      result.attempts += job.attempts_size();
      result.checkpoints += job.checkpoints_size();
      result.restarts += job.restarts();
    }
    return result;
  }

  World world_;
  Network network_;
  Invariants invariants_;
  Coordinator coordinator_;
  std::vector<std::unique_ptr<Machine>> machines_;
  std::vector<std::unique_ptr<Client>> clients_;
  int64_t faults_ = 0;
};

}  // namespace

Result Simulate(const Options& options) { return Simulation(options).Run(); }

}  // namespace mega::sim
