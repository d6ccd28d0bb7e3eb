// The machine and its worker process; engines are in engine.cc.
#include "tests/sim/machine.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "tests/sim/coordinator.h"

namespace mega::sim {
namespace {

RankKey KeyOf(const v1::RankRef& ref) {
  return {ref.job_uid(), ref.attempt(), ref.epoch(), ref.rank()};
}

}  // namespace

Machine::Machine(World& world, Network& network, Coordinator& coordinator, Invariants& invariants,
                 Options options)
    : world_(world),
      network_(network),
      coordinator_(coordinator),
      invariants_(invariants),
      options_(std::move(options)) {}

absl::Duration Machine::Boottime() const {
  return (world_.now() - boot_time_) * options_.clock_rate;
}

absl::Duration Machine::TrueTimeOf(absl::Duration boottime) const {
  return boot_time_ + boottime / options_.clock_rate;
}

bool Machine::IsFrozen() const { return !is_up_ || machine_paused_until_ > world_.now(); }

std::vector<EnginePtr> Machine::LiveEngines() const {
  std::vector<EnginePtr> engines;
  for (const auto& [key, engine] : engines_) {
    if (engine->is_alive) engines.push_back(engine);
  }
  return engines;
}

void Machine::Boot() {
  if (is_up_ || is_retired_) return;
  is_up_ = true;
  ++boot_;
  boot_time_ = world_.now();
  world_.Trace("{} boots, boot {}", name(), boot_);
  StartWorker();
}

void Machine::StartWorker() {
  if (!is_up_ || has_worker_) return;
  if (IsFrozen()) return world_.At(machine_paused_until_, [this] { StartWorker(); });
  has_worker_ = true;
  ++worker_life_;
  incarnation_ = std::max<int64_t>(incarnation_ + 1, absl::ToInt64Nanoseconds(world_.now()));
  worker_paused_until_ = absl::ZeroDuration();
  world_.Trace("{} starts a worker, incarnation {}", name(), incarnation_);
  // What an earlier one left is killed before the hello; nobody saw how it ended.
  for (const auto& [key, engine] : engines_) engine->is_alive = false;
  std::erase_if(engines_, [](const auto& entry) { return !entry.second->is_dying; });
  parts_.clear();
  lease_ = lease::State{.options = options_.lease};
  relays_.clear();
  Lease(lease::Tick{});
  Connect();
}

void Machine::EndWorker() {
  has_worker_ = false;
  ++worker_life_;
  // Their socket closes: they leave within a second.
  for (const auto& [key, engine] : engines_) {
    Run(engine, world_.rng.Between(absl::ZeroDuration(), absl::Seconds(1)),
        [this, engine] { End(engine, 1, 0, false); });
  }
}

void Machine::KillWorker(absl::Duration back_after) {
  if (!has_worker_ || IsFrozen()) return;
  world_.Trace("{}: worker is killed", name());
  DropSession();
  EndWorker();
  world_.After(back_after, [this] { StartWorker(); });
}

void Machine::LeaveWorker(absl::Duration back_after) {
  if (!has_worker_ || IsFrozen()) return;
  world_.Trace("{}: worker is told to leave", name());
  for (const EnginePtr& engine : LiveEngines()) End(engine, 0, 15, /*killed_by_worker=*/true);
  v1::WorkerMessage message;
  message.mutable_goodbye()->set_reason("terminated");
  Send(std::move(message));
  DropSession();
  EndWorker();
  world_.After(back_after, [this] { StartWorker(); });
}

void Machine::Reboot(absl::Duration down_for) {
  if (!is_up_) return;
  world_.Trace("{}: power is lost", name());
  DropSession(/*silently=*/true);
  for (auto& [key, engine] : std::exchange(engines_, {})) {
    engine->is_alive = engine->is_dying = false;
  }
  has_worker_ = false;
  ++worker_life_;
  is_up_ = false;
  machine_paused_until_ = absl::ZeroDuration();
  world_.After(down_for, [this] { Boot(); });
}

void Machine::Retire() {
  is_retired_ = true;
  Reboot(absl::ZeroDuration());
}

void Machine::PauseWorker(absl::Duration span) {
  if (!has_worker_) return;
  world_.Trace("{}: worker pauses for {}", name(), absl::FormatDuration(span));
  worker_paused_until_ = std::max(worker_paused_until_, world_.now() + span);
}

void Machine::PauseMachine(absl::Duration span) {
  if (!is_up_) return;
  world_.Trace("{}: everything pauses for {}", name(), absl::FormatDuration(span));
  machine_paused_until_ = std::max(machine_paused_until_, world_.now() + span);
  worker_paused_until_ = std::max(worker_paused_until_, machine_paused_until_);
  world_.At(machine_paused_until_, [this] { Wake(); });
}

// First thing on waking: who is past its lease goes, by the engine's own timer.
void Machine::Wake() {
  if (IsFrozen()) return;
  for (const EnginePtr& engine : LiveEngines()) WatchLease(engine);
  for (const EnginePtr& engine : LiveEngines()) invariants_.OnRankLive(*engine);
}

void Machine::ResetConnection() {
  if (connection_ == nullptr) return;
  world_.Trace("{}: connection is reset", name());
  const ConnectionPtr connection = connection_;
  network_.CloseByCoordinator(connection);
  network_.CloseByWorker(connection, /*silently=*/true);
  OnClosed(connection);
}

void Machine::SayOldSavesFailed() {
  for (const auto& [key, exited] : exited_) {
    v1::WorkerMessage message;
    *message.mutable_checkpoint_failed()->mutable_rank() = exited.rank();
    message.mutable_checkpoint_failed()->set_step(1000);
    message.mutable_checkpoint_failed()->set_message("No space left on device");
    Send(std::move(message));
  }
}

void Machine::DieSlowly(absl::Duration span) {
  world_.Trace("{}: what is killed stays for {}", name(), absl::FormatDuration(span));
  deaths_held_until_ = std::max(deaths_held_until_, world_.now() + span);
}

void Machine::RefuseRemovals(absl::Duration span) {
  world_.Trace("{}: the disk removes nothing for {}", name(), absl::FormatDuration(span));
  removals_held_until_ = std::max(removals_held_until_, world_.now() + span);
}

void Machine::Heal() {
  options_.crash_chance = 0;
  up_held_until = down_held_until = absl::ZeroDuration();
  worker_paused_until_ = std::min(worker_paused_until_, world_.now());
  machine_paused_until_ = std::min(machine_paused_until_, world_.now());
  Wake();
  Boot();
  StartWorker();
}

void Machine::Work(absl::Duration span, std::function<void()> what) {
  world_.After(span, [this, life = worker_life_, what = std::move(what)]() mutable {
    if (life != worker_life_) return;
    if (worker_paused_until_ <= world_.now()) return what();
    Work(worker_paused_until_ - world_.now(), std::move(what));
  });
}

void Machine::Connect() {
  connection_ = network_.Connect(*this);
  SayHello();
  // No answer: give up on this one, though it may still arrive, and try another.
  Work(absl::Seconds(5), [this, connection = connection_] {
    if (connection != connection_ || connection->is_answered) return;
    DropSession();
    Connect();
  });
}

void Machine::SayHello() {
  const lease::Decision decision = lease::Step(lease_, lease::HelloDue{}, Boottime());
  v1::WorkerMessage message;
  v1::Hello& hello = *message.mutable_hello();
  v1::Node& node = *hello.mutable_node();
  node.set_name(name());
  node.set_boot_id(fmt::format("{}-boot-{}", address(), boot_));
  node.set_incarnation(incarnation_);
  node.set_address(address());
  node.set_state_folder_id(address());
  (*node.mutable_labels())["rack"] = options_.rack;
  hello.set_acked_witness_set(lease_.witnesses.number());
  for (int64_t i = 0; i < options_.devices; ++i) node.add_devices()->set_index(i);
  for (const auto& [key, engine] : engines_) *hello.add_running() = engine->ref;
  for (const auto& [key, exited] : exited_) *hello.add_exited() = exited;
  hello.set_last_command_seq(last_command_seq_);
  hello.set_cluster_id(cluster_id_);
  hello.set_heartbeat_seq(*decision.send);
  Send(std::move(message));
  // What the last session may not have delivered, or the coordinator not have kept.
  for (const EnginePtr& engine : LiveEngines()) {
    if (engine->is_ready && !engine->is_connected) Report(engine);
    if (engine->is_connected) TellProgress(*engine);
  }
  for (const auto& [key, part] : parts_) {
    v1::WorkerMessage again;
    *again.mutable_checkpoint_part() = part;
    Send(std::move(again));
  }
  ScheduleTick(decision.wake_at);
}

void Machine::Send(v1::WorkerMessage message) {
  if (connection_ != nullptr) network_.SendUp(connection_, std::move(message));
}

void Machine::DropSession(bool silently) {
  if (connection_ == nullptr) return;
  network_.CloseByWorker(std::exchange(connection_, nullptr), silently);
  if (has_worker_) Lease(lease::SessionDown{});
}

void Machine::OnClosed(const ConnectionPtr& connection) {
  if (!has_worker_ || connection != connection_) return;
  DropSession();
  Work(world_.rng.Between(absl::Milliseconds(200), absl::Seconds(3)), [this] {
    if (connection_ == nullptr) Connect();
  });
}

void Machine::Lease(const lease::Input& input) {
  const lease::Decision decision = lease::Step(lease_, input, Boottime());
  if (decision.push_lease_end) {
    for (const auto& [key, engine] : engines_) engine->lease_end = lease_.end;
  }
  if (decision.kill_ranks) {
    for (const EnginePtr& engine : LiveEngines()) End(engine, 0, 9, /*killed_by_worker=*/true);
  }
  if (decision.send) {
    v1::WorkerMessage message;
    message.mutable_heartbeat()->set_seq(*decision.send);
    Send(std::move(message));
    for (const EnginePtr& engine : LiveEngines()) {
      if (!engine->is_told) TellProgress(*engine);
    }
  }
  if (decision.ack_renewal) {
    v1::WorkerMessage message;
    message.mutable_renewal_ack()->set_heartbeat_seq(*decision.ack_renewal);
    Send(std::move(message));
  }
  if (decision.ack_witnesses) {
    v1::WorkerMessage message;
    message.mutable_witness_set_ack()->set_number(*decision.ack_witnesses);
    Send(std::move(message));
  }
  if (decision.ask_witnesses) AskWitnesses(*decision.ask_witnesses);
  ScheduleTick(decision.wake_at);
}

void Machine::ScheduleTick(absl::Duration boottime) {
  const int64_t tick = ++tick_;
  // A timer fires a little late, never early; here also because the clock's rate rounds.
  const absl::Duration late = absl::Microseconds(1);
  Work(std::max(TrueTimeOf(boottime) - world_.now(), absl::ZeroDuration()) + late, [this, tick] {
    if (tick == tick_) Lease(lease::Tick{});
  });
}

void Machine::OnMessage(const ConnectionPtr& connection, const v1::CoordinatorMessage& message) {
  if (!has_worker_ || connection != connection_) return;
  connection->is_answered = true;
  if (message.has_lease()) {
    if (!Join(message.lease().cluster_id())) return OnClosed(connection);
    Lease(lease::Granted{.heartbeat_seq = message.lease().heartbeat_seq(),
                         .ttl = FromProto(message.lease().ttl()),
                         .outage_grace = FromProto(message.lease().outage_grace()),
                         .witnesses = message.lease().witnesses()});
  } else if (message.has_relayed_lease()) {
    const v1::RelayedLease& lease = message.relayed_lease();
    const auto relay = relays_.find({lease.node(), lease.incarnation(), lease.heartbeat_seq()});
    if (relay == relays_.end()) return;
    network_.SendPeer(address(), relay->second, [lease](Machine& to) { to.OnRelayedLease(lease); });
    relays_.erase(relay);
  } else if (message.has_command()) {
    OnCommand(message.command());
  } else if (message.has_reject()) {
    world_.Trace("{} is rejected: {}", name(), message.reject().reason());
    OnClosed(connection);
  }
}

bool Machine::Join(const std::string& cluster_id) {
  if (cluster_id.empty() || cluster_id == cluster_id_) return true;
  if (!cluster_id_.empty()) {
    if (!engines_.empty()) return false;
    world_.Trace("{} leaves {} for {}", name(), cluster_id_, cluster_id);
    last_command_seq_ = 0;
    exited_.clear();
    parts_.clear();
    lease_.witnesses.Clear();
    lease_.rounds.clear();
  }
  cluster_id_ = cluster_id;
  return true;
}

bool Machine::MaybeCrash() {
  if (!world_.rng.Chance(options_.crash_chance)) return false;
  KillWorker(world_.rng.Between(absl::Milliseconds(100), absl::Seconds(8)));
  return true;
}

void Machine::OnCommand(const v1::Command& command) {
  const bool is_new = command.seq() > last_command_seq_;
  if (is_new && command.has_start_ranks() && !lease::MayRun(lease_, Boottime())) {
    world_.Trace("{} may not start ranks now; says hello again", name());
    return OnClosed(connection_);
  }
  if (MaybeCrash()) return;
  last_command_seq_ = std::max(last_command_seq_, command.seq());  // durable
  if (MaybeCrash()) return;
  if (is_new) Accept(command);
  if (MaybeCrash()) return;
  v1::WorkerMessage message;
  message.mutable_command_ack()->set_seq(command.seq());
  Send(std::move(message));
}

void Machine::Accept(const v1::Command& command) {
  if (command.has_start_ranks()) {
    StartRanks(command.start_ranks());
  } else if (command.has_connect_ranks()) {
    const v1::ConnectRanks& connect = command.connect_ranks();
    for (const EnginePtr& engine : LiveEngines()) {
      const bool is_meant = engine->ref.job_uid() == connect.job_uid() &&
                            engine->ref.epoch() == connect.epoch() && !engine->is_connected;
      if (!is_meant) continue;
      engine->is_connected = true;
      engine->is_told = false;
      Run(engine, absl::Milliseconds(10), [this, engine] { TakeStep(engine); });
    }
  } else if (command.has_stop_ranks()) {
    StopRanks(command.stop_ranks());
  } else if (command.has_checkpoint_committed()) {
    const v1::CheckpointCommitted& committed = command.checkpoint_committed();
    std::erase_if(parts_, [&](const auto& part) {
      return part.second.job_uid() == committed.job_uid() &&
             part.second.step() <= committed.manifest().step();
    });
  } else if (command.has_checkpoint_rejected()) {
    TakeBack(command.checkpoint_rejected());
  } else if (command.has_delete_checkpoint()) {
    // Acked, it is on the worker's disk, and carried out when the folder's lets it.
    const absl::Duration soon = world_.now() + absl::Milliseconds(200);
    world_.At(std::max(soon, removals_held_until_),
              [this, command] { invariants_.OnRemoved(coordinator_.stored(), name(), command); });
  }
}

void Machine::TakeBack(const v1::CheckpointRejected& rejected) {
  for (const EnginePtr& engine : LiveEngines()) {
    if (engine->ref.job_uid() != rejected.job_uid() || engine->ref.epoch() != rejected.epoch()) {
      continue;
    }
    parts_.erase({KeyOf(engine->ref), rejected.step()});
    invariants_.OnPartTakenBack(engine->ref, rejected.step());
  }
}

void Machine::StopRanks(const v1::StopRanks& stop) {
  for (const EnginePtr& engine : LiveEngines()) {
    if (engine->ref.job_uid() != stop.job_uid() || engine->ref.epoch() != stop.epoch()) continue;
    const absl::Duration grace = std::max(FromProto(stop.grace()), absl::Milliseconds(5));
    Run(engine, world_.rng.Between(absl::ZeroDuration(), grace),
        [this, engine] { End(engine, 0, 9, /*killed_by_worker=*/true); });
  }
}

void Machine::StartRanks(const v1::StartRanks& start) {
  // A later attempt of the job: how the ranks of earlier ones ended is of no interest any more.
  std::erase_if(exited_, [&](const auto& entry) {
    return std::get<0>(entry.first) == start.job_uid() && std::get<2>(entry.first) < start.epoch();
  });
  std::erase_if(parts_, [&](const auto& entry) {
    return entry.second.job_uid() == start.job_uid() && entry.second.epoch() < start.epoch();
  });
  for (const int64_t rank : start.ranks()) {
    auto engine = std::make_shared<Engine>();
    engine->machine = this;
    engine->ref.set_job_uid(start.job_uid());
    engine->ref.set_attempt(start.attempt());
    engine->ref.set_epoch(start.epoch());
    engine->ref.set_rank(rank);
    engine->device = start.plan().ranks(static_cast<int>(rank)).device();
    engine->order = start;
    engine->step = start.load().step();
    engine->lease_end = lease_.end;
    engines_[KeyOf(engine->ref)] = engine;
    world_.Trace("{} starts rank {} of {} attempt {} epoch {} on device {}", name(), rank,
                 start.job_uid(), start.attempt(), start.epoch(), engine->device);
    invariants_.OnRankLive(*engine);
    Run(engine, world_.rng.Between(absl::Milliseconds(50), absl::Seconds(1)),
        [this, engine] { MakeReady(engine); });
    WatchLease(engine);
  }
}

}  // namespace mega::sim
