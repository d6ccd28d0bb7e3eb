#include "tests/sim/simulation.h"

#include <algorithm>
#include <map>
#include <memory>

#include "tests/sim/client.h"
#include "tests/sim/coordinator.h"
#include "tests/sim/faults.h"
#include "tests/sim/machine.h"
#include "tests/sim/users.h"

namespace mega::sim {
namespace {

// Faults stop after this; then everything must come to an end within that.
constexpr absl::Duration kFaultsMax = absl::Seconds(300);
constexpr absl::Duration kHealedMax = absl::Seconds(1800);
// The longest that work of a paused machine is held up, past the last fault too.
constexpr absl::Duration kPauseMax = absl::Seconds(60);
// Then everybody is back in session and has new witnesses.
constexpr absl::Duration kSettled = absl::Seconds(30);

class Simulation {
 public:
  explicit Simulation(const Options& options)
      : world_(options.seed, options.is_traced),
        script_(options.script),
        network_(world_, NetworkOptions()),
        invariants_(world_),
        coordinator_(world_, network_, invariants_, CoreOptions(options), CoordinatorFaults()),
        faults_(world_, network_, coordinator_, machines_),
        users_(world_, coordinator_, options.seed) {
    if (script_ != nullptr) {
      BuildScripted(options);
    } else {
      BuildByChance(options);
    }
  }

  Result Run() {
    const absl::Duration faults_end =
        script_ ? script_->end : world_.rng.Between(absl::Seconds(20), kFaultsMax);
    coordinator_.Start();
    for (auto& machine : machines_) {
      const bool is_twin = has_twin_ && machine == machines_.back();
      world_.At(world_.rng.Between(absl::ZeroDuration(), absl::Seconds(is_twin ? 200 : 3)),
                [&machine] { machine->Boot(); });
    }
    for (auto& client : clients_) client->Start();
    if (script_ != nullptr) {
      script_->faults(world_, coordinator_, faults_, machines_);
    } else {
      faults_.Plan(faults_end);
      users_.Plan(faults_end);
    }
    world_.RunUntil(faults_end);
    world_.Trace("------ no more faults");
    if (script_ != nullptr) return Sum();
    faults_.Stop();
    network_.Heal();
    coordinator_.Heal();
    if (has_twin_) machines_.back()->Retire();
    for (auto& machine : machines_) {
      if (!has_twin_ || machine != machines_.back()) machine->Heal();
    }
    invariants_.CheckIndex(coordinator_.state());
    world_.RunUntil(faults_end + kHealedMax, [this] { return IsOver(); });
    if (!world_.failure()) CheckEnd(faults_end);
    return Sum();
  }

 private:
  bool Half() { return world_.rng.Chance(0.5); }

  Network::Options NetworkOptions() {
    Network::Options options;
    if (script_ != nullptr) return options;
    options.delay_max = Half() ? absl::Milliseconds(5) : absl::Milliseconds(500);
    options.slow_chance = Half() ? 0.02 : 0;
    options.duplicate_chance = Half() ? 0.03 : 0;
    options.drop_chance = Half() ? 0.1 : 0;
    return options;
  }

  // A lease and the grace are measured at most 0.8 s wrong; the skew is 1 s.
  core::Options CoreOptions(const Options& options) {
    core::Options core;
    core.outage_grace = absl::Seconds(world_.rng.Between(20, 60));
    core.mutants = options.mutants;
    if (script_ != nullptr && script_->node_retention) {
      core.node_retention = *script_->node_retention;
    }
    clock_error_ = 0.8 / absl::ToDoubleSeconds(core.lease + core.outage_grace);
    return core;
  }

  void BuildByChance(const Options& options) {
    const int64_t machines = world_.rng.Between(1, 6);
    const int64_t racks = world_.rng.Between(1, 3);
    int64_t devices = 0;
    const bool workers_crash = Half();
    for (int64_t i = 0; i < machines; ++i) {
      Machine::Options machine;
      machine.name = machine.address = fmt::format("node{}", i);
      machine.rack = fmt::format("rack{}", i % racks);
      machine.devices = world_.rng.Between(1, 3);
      machine.clock_rate = 1 + (world_.rng.Unit() - 0.5) * 2 * clock_error_;
      machine.lease.mutants = options.lease_mutants;
      machine.crash_chance = workers_crash ? 0.01 : 0;
      machine.permanent_exit_chance = 0.15;
      devices += machine.devices;
      AddMachine(std::move(machine));
    }
    if (world_.rng.Chance(0.2)) AddTwin(options.lease_mutants);
    AddClients(options.seed, devices);
  }

  // Half of the runs are of equals. The others may have priorities, namespaces with quotas, and a
  // job that their fleet could never hold. Chance of its own: what else happens stays as it was.
  void AddClients(uint64_t seed, int64_t devices) {
    Rng rng(~seed);
    const bool is_plain = rng.Chance(0.5);
    const bool has_priorities = !is_plain && rng.Chance(0.7);
    const bool has_namespaces = !is_plain && rng.Chance(0.5);
    const bool has_hopeless = !is_plain && rng.Chance(0.5);
    const int64_t jobs = world_.rng.Between(1, 6);
    std::map<std::string, int64_t> largest;
    for (int64_t i = 0; i < jobs; ++i) {
      Client::Options client{.name = fmt::format("job{}", i),
                             .ranks = world_.rng.Between(1, devices)};
      if (has_priorities) {
        client.scheduling.set_priority(rng.Between(-1, 2));
        if (rng.Chance(0.2)) client.scheduling.set_preemptible(false);
        client.scheduling.mutable_preempt_grace()->set_seconds(rng.Between(0, 20));
      }
      if (has_namespaces) client.name_space = fmt::format("team{}", rng.Between(0, 1));
      int64_t& most = largest[client.name_space];
      most = std::max(most, client.ranks);
      AddClient(std::move(client));
    }
    for (const auto& [name, most] : largest) {
      if (!has_namespaces) break;
      v1::Namespace limits;
      limits.set_name(name);
      limits.set_max_devices(rng.Between(most, devices));
      operator_.SetLimits(rng.Between(absl::ZeroDuration(), absl::Seconds(60)), limits);
    }
    if (has_hopeless) {
      Client::Options client{.name = "hopeless", .ranks = devices + 10, .is_hopeless = true};
      client.scheduling.set_priority(rng.Between(-1, 2));
      AddClient(std::move(client));
    }
  }

  void AddClient(Client::Options options) {
    clients_.push_back(
        std::make_unique<Client>(world_, coordinator_, invariants_, std::move(options)));
  }

  void BuildScripted(const Options& options) {
    for (int64_t i = 0; i < script_->machines; ++i) {
      Machine::Options machine;
      machine.name = machine.address = fmt::format("node{}", i);
      machine.rack = fmt::format("rack{}", i);
      machine.devices = 1;
      machine.clock_rate = 1 + (world_.rng.Unit() - 0.5) * 2 * clock_error_;
      machine.lease.mutants = options.lease_mutants;
      AddMachine(std::move(machine));
    }
    AddClient(
        {.name = "job", .ranks = script_->ranks, .steps = 1'000'000, .submit = script_->submit});
  }

  void AddMachine(Machine::Options options) {
    machines_.push_back(
        std::make_unique<Machine>(world_, network_, coordinator_, invariants_, std::move(options)));
    network_.AddMachine(*machines_.back());
  }

  // Another machine that was given the name of the first by mistake; it comes and goes.
  void AddTwin(const lease::Options::Mutants& mutants) {
    Machine::Options twin;
    twin.name = machines_.front()->name();
    twin.address = twin.name + "-twin";
    twin.rack = "rack9";
    twin.lease.mutants = mutants;
    AddMachine(std::move(twin));
    has_twin_ = true;
  }

  Coordinator::Faults CoordinatorFaults() {
    if (script_ != nullptr) return {};
    return {.slow_sync_chance = Half() ? 0.05 : 0, .crash_chance = Half() ? 0.003 : 0};
  }

  bool IsOver() const {
    for (const auto& client : clients_) {
      if (!client->IsDone()) return false;
    }
    return coordinator_.is_alive() && coordinator_.stored().index.unfinished.empty();
  }

  void CheckEnd(absl::Duration faults_end) {
    invariants_.CheckIndex(coordinator_.state());
    invariants_.CheckIndex(coordinator_.stored());
    if (IsOver()) {
      if (!coordinator_.state().index.device_owner.empty()) {
        world_.Fail("all jobs have ended, and devices are still in use");
      }
      world_.RunUntil(std::max(world_.now(), faults_end + kPauseMax) + kSettled);
      if (!has_twin_) invariants_.CheckWitnesses(coordinator_.state());
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
                  .faults = faults_.planned()};
    for (const auto& [uid, job] : coordinator_.stored().durable.jobs) {
      ++result.jobs;
      result.succeeded += job.phase() == v1::JOB_PHASE_SUCCEEDED;
      result.failed += job.phase() == v1::JOB_PHASE_FAILED;
      result.cancelled += job.phase() == v1::JOB_PHASE_CANCELLED;
      result.attempts += job.attempts_size();
      result.checkpoints += job.checkpoints_size();
      result.restarts += job.restarts();
      const auto live = coordinator_.state().live.jobs.find(uid);
      if (live != coordinator_.state().live.jobs.end())
        result.steps += live->second.newest().step();
    }
    return result;
  }

  World world_;
  const Script* const script_;
  double clock_error_ = 0;
  bool has_twin_ = false;
  Network network_;
  Invariants invariants_;
  Coordinator coordinator_;
  std::vector<std::unique_ptr<Machine>> machines_;
  Faults faults_;
  std::vector<std::unique_ptr<Client>> clients_;
  Operator operator_{world_, coordinator_};
  Users users_;
};

}  // namespace

Result Simulate(const Options& options) { return Simulation(options).Run(); }

std::string Tail(const std::vector<std::string>& trace, size_t lines) {
  std::string text;
  for (size_t i = trace.size() > lines ? trace.size() - lines : 0; i < trace.size(); ++i) {
    text += trace[i] + "\n";
  }
  return text;
}

}  // namespace mega::sim
