// A machine among its like: asks its witnesses, and is one itself.
#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "tests/sim/machine.h"

namespace mega::sim {

void Machine::AskWitnesses(int64_t round) {
  for (const v1::Witness& witness : lease_.witnesses.witnesses()) {
    network_.SendPeer(address(), witness.address(),
                      [from = address(), round, life = worker_life_](Machine& to) {
                        to.OnQuery(from, round, life);
                      });
  }
}

// A stopped worker answers when it goes on.
void Machine::OnQuery(const std::string& from, int64_t round, int64_t asker_life) {
  if (!has_worker_) return;
  Work(std::max(worker_paused_until_ - world_.now(), absl::ZeroDuration()), [=, this] {
    const lease::Answered answer = {.round = round,
                                    .node = name(),
                                    .incarnation = incarnation_,
                                    .no_session = lease::HasNoSession(lease_, Boottime())};
    world_.Trace("{} says to {}: {} session", name(), from, answer.no_session ? "no" : "a");
    network_.SendPeer(address(), from, [=, witness = address()](Machine& to) {
      to.OnAnswer(asker_life, answer, witness);
    });
  });
}

void Machine::OnAnswer(int64_t worker_life, const lease::Answered& answer,
                       const std::string& witness) {
  if (!has_worker_ || worker_life != worker_life_) return;
  Work(std::max(worker_paused_until_ - world_.now(), absl::ZeroDuration()), [=, this] {
    Lease(answer);
    if (answer.no_session) return;
    v1::RelayedHeartbeat heartbeat;
    heartbeat.set_node(name());
    heartbeat.set_incarnation(incarnation_);
    heartbeat.set_heartbeat_seq(answer.round);
    network_.SendPeer(address(), witness, [heartbeat, from = address()](Machine& to) {
      to.OnRelayRequest(from, heartbeat);
    });
  });
}

void Machine::OnRelayRequest(const std::string& from, v1::RelayedHeartbeat heartbeat) {
  if (!has_worker_ || connection_ == nullptr || worker_paused_until_ > world_.now()) return;
  relays_[{heartbeat.node(), heartbeat.incarnation(), heartbeat.heartbeat_seq()}] = from;
  v1::WorkerMessage message;
  *message.mutable_relayed_heartbeat() = std::move(heartbeat);
  Send(std::move(message));
}

void Machine::OnRelayedLease(const v1::RelayedLease& relayed) {
  if (!has_worker_ || relayed.incarnation() != incarnation_ || relayed.node() != name()) return;
  world_.Trace("{} is renewed through a witness: {}", name(), relayed.has_lease());
  if (!relayed.has_lease()) return;
  Work(std::max(worker_paused_until_ - world_.now(), absl::ZeroDuration()), [=, this] {
    Lease(lease::Granted{.heartbeat_seq = relayed.heartbeat_seq(),
                         .ttl = FromProto(relayed.lease().ttl()),
                         .outage_grace = FromProto(relayed.lease().outage_grace()),
                         .witnesses = {},
                         .is_relayed = true});
  });
}

}  // namespace mega::sim
