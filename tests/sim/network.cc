#include "tests/sim/network.h"

#include <algorithm>

#include "tests/sim/coordinator.h"
#include "tests/sim/machine.h"

namespace mega::sim {
namespace {

constexpr absl::Duration kKeepalive = absl::Seconds(20);

}  // namespace

absl::Duration Network::Delay() {
  if (world_.rng.Chance(options_.slow_chance)) {
    return world_.rng.Between(absl::ZeroDuration(), options_.slow_max);
  }
  return world_.rng.Between(absl::Microseconds(100), options_.delay_max);
}

ConnectionPtr Network::Connect(Machine& machine) {
  auto connection = std::make_shared<Connection>();
  connection->id = next_id_++;
  connection->machine = &machine;
  connection->coordinator_life = coordinator_->life();
  return connection;
}

void Network::SendUp(const ConnectionPtr& connection, v1::WorkerMessage message) {
  absl::Duration time = world_.now() + Delay();
  if (!connection->up.empty()) time = std::max(time, connection->up.back().first);
  if (world_.rng.Chance(options_.duplicate_chance)) {
    // A copy comes late, in any order; but never before its like, which may be held.
    world_.At(time + world_.rng.Between(absl::ZeroDuration(), absl::Seconds(5)),
              [this, connection, message] {
                if (connection->machine->up_held_until > world_.now()) return;
                ArriveUp(connection, message);
              });
  }
  connection->up.emplace_back(time, std::move(message));
  world_.At(time, [this, connection] { PumpUp(connection); });
}

void Network::PumpUp(const ConnectionPtr& connection) {
  const absl::Duration held = connection->machine->up_held_until;
  if (held > world_.now()) return world_.At(held, [this, connection] { PumpUp(connection); });
  while (!connection->up.empty() && connection->up.front().first <= world_.now()) {
    const v1::WorkerMessage message = std::move(connection->up.front().second);
    connection->up.pop_front();
    ArriveUp(connection, message);
  }
}

void Network::ArriveUp(const ConnectionPtr& connection, const v1::WorkerMessage& message) {
  if (connection->up_cut || !connection->coordinator_open) return;
  if (!coordinator_->is_alive() || coordinator_->life() != connection->coordinator_life) {
    connection->coordinator_open = false;  // refused: nobody listens, or it has forgotten us
    return world_.After(Delay(), [connection] { connection->machine->OnClosed(connection); });
  }
  coordinator_->OnMessage(connection, message);
}

void Network::SendDown(const ConnectionPtr& connection, v1::CoordinatorMessage message) {
  absl::Duration time = world_.now() + Delay();
  if (!connection->down.empty()) time = std::max(time, connection->down.back().first);
  if (world_.rng.Chance(options_.duplicate_chance)) {
    world_.At(time + world_.rng.Between(absl::ZeroDuration(), absl::Seconds(5)),
              [this, connection, message] {
                if (connection->machine->down_held_until > world_.now()) return;
                ArriveDown(connection, message);
              });
  }
  connection->down.emplace_back(time, std::move(message));
  world_.At(time, [this, connection] { PumpDown(connection); });
}

// A stopped worker reads nothing: what arrives waits in its socket.
void Network::PumpDown(const ConnectionPtr& connection) {
  const absl::Duration held =
      std::max(connection->machine->down_held_until, connection->machine->worker_paused_until());
  if (held > world_.now()) return world_.At(held, [this, connection] { PumpDown(connection); });
  while (!connection->down.empty() && connection->down.front().first <= world_.now()) {
    const v1::CoordinatorMessage message = std::move(connection->down.front().second);
    connection->down.pop_front();
    ArriveDown(connection, message);
  }
}

void Network::ArriveDown(const ConnectionPtr& connection, const v1::CoordinatorMessage& message) {
  if (connection->down_cut || !connection->worker_open) return;
  if (connection->machine->worker_paused_until() > world_.now()) return;  // a copy; it has its like
  connection->machine->OnMessage(connection, message);
}

void Network::CloseByWorker(const ConnectionPtr& connection, bool silently) {
  if (!connection->worker_open) return;
  connection->worker_open = false;
  connection->up_cut = silently || world_.rng.Chance(0.5);
  absl::Duration heard = silently ? kKeepalive : Delay();
  if (!silently && !connection->up.empty()) {
    heard = std::max(heard, connection->up.back().first - world_.now());
  }
  world_.After(heard, [this, connection] {
    if (connection->coordinator_open && coordinator_->life() == connection->coordinator_life) {
      coordinator_->OnClosed(connection);
    }
    connection->coordinator_open = false;
  });
}

void Network::CloseByCoordinator(const ConnectionPtr& connection) {
  if (!connection->coordinator_open) return;
  connection->coordinator_open = false;
  connection->down_cut = world_.rng.Chance(0.5);
  const bool is_held = connection->machine->down_held_until > world_.now();
  absl::Duration heard = is_held ? kKeepalive : Delay();
  if (!is_held && !connection->down.empty()) {
    heard = std::max(heard, connection->down.back().first - world_.now());
  }
  world_.After(heard, [connection] { connection->machine->OnClosed(connection); });
}

void Network::AddMachine(Machine& machine) { machines_[machine.address()] = &machine; }

void Network::CutPeers(const std::string& from, const std::string& to, absl::Duration until) {
  absl::Duration& cut = cut_until_[{from, to}];
  cut = std::max(cut, until);
}

void Network::HoldPeers(const std::string& from, const std::string& to, absl::Duration until) {
  absl::Duration& held = held_until_[{from, to}];
  held = std::max(held, until);
}

void Network::SendPeer(const std::string& from, const std::string& to,
                       std::function<void(Machine&)> what) {
  const auto machine = machines_.find(to);
  if (machine == machines_.end()) return;
  const int copies = world_.rng.Chance(options_.duplicate_chance) ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    if (world_.rng.Chance(options_.drop_chance)) continue;
    world_.After(Delay(), [this, link = Link(from, to), machine = machine->second, what] {
      ArrivePeer(link, *machine, what);
    });
  }
}

void Network::ArrivePeer(const Link& link, Machine& machine, std::function<void(Machine&)> what) {
  const auto held = held_until_.find(link);
  if (held != held_until_.end() && held->second > world_.now()) {
    return world_.At(held->second,
                     [this, link, &machine, what] { ArrivePeer(link, machine, what); });
  }
  const auto cut = cut_until_.find(link);
  if (cut == cut_until_.end() || cut->second <= world_.now()) what(machine);
}

void Network::Heal() {
  options_ = Options();
  cut_until_.clear();
  held_until_.clear();
}

}  // namespace mega::sim
