#include "worker/daemon/witness_client.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/listen_address.h"
#include "worker/daemon/channel.h"

namespace mega::daemon {
namespace {

constexpr std::chrono::seconds kPatience{2};
constexpr size_t kMostCalls = 32;  // three witnesses, one asking a heartbeat, two calls of 2 s

}  // namespace

// Both calls to one witness in one round.
struct WitnessClient::Call {
  std::shared_ptr<v1::WitnessService::Stub> stub;
  int64_t round = 0;
  grpc::ClientContext query_context;
  v1::QueryWitnessRequest query;
  v1::QueryWitnessResponse answer;
  grpc::ClientContext relay_context;
  v1::RelayHeartbeatRequest heartbeat;
  v1::RelayHeartbeatResponse lease;
};

WitnessClient::WitnessClient(const v1::Node& self, std::shared_ptr<const tls::Identity> identity,
                             std::function<void(lease::Input)> heard)
    : node_(self.name()),
      incarnation_(self.incarnation()),
      identity_(std::move(identity)),
      heard_(std::move(heard)) {}

void WitnessClient::Ask(int64_t round, const v1::WitnessSet& witnesses) {
  std::vector<std::shared_ptr<Call>> calls;
  {
    MutexLock lock(mu_);
    if (stopped_) return;
    std::map<Place, std::shared_ptr<v1::WitnessService::Stub>> stubs;
    for (const v1::Witness& witness : witnesses.witnesses()) {
      // The coordinator passes on what a worker said of itself: gRPC would take more than
      // HOST:PORT.
      if (!ParseServerAddress("the address of a witness", witness.address()).ok()) continue;
      const Place place{witness.node(), witness.address()};
      auto& stub = stubs[place];
      if (const auto known = stubs_.find(place); known != stubs_.end()) {
        stub = known->second;
      }
      if (!stub) {
        stub = v1::WitnessService::NewStub(
            MakePeerChannel(witness.address(), witness.node(), identity_.get()));
      }
      if (calls_.size() >= kMostCalls) continue;
      auto call = std::make_shared<Call>();
      call->stub = stub;
      call->round = round;
      call->query.set_node(node_);
      call->query.set_incarnation(incarnation_);
      call->query.set_witness_set(witnesses.number());
      call->query_context.set_deadline(std::chrono::system_clock::now() + kPatience);
      calls_.insert(call);
      calls.push_back(std::move(call));
    }
    stubs_ = std::move(stubs);
  }
  for (const auto& call : calls) Query(call);
}

void WitnessClient::Query(const std::shared_ptr<Call>& call) {
  call->stub->async()->QueryWitness(
      &call->query_context, &call->query, &call->answer, [this, call](const grpc::Status& status) {
        if (!status.ok()) return End(call);
        heard_(lease::Answered{.round = call->round,
                               .node = call->answer.node(),
                               .incarnation = call->answer.incarnation(),
                               .no_session = call->answer.no_session()});
        if (call->answer.no_session()) return End(call);
        Relay(call);
      });
}

void WitnessClient::Relay(const std::shared_ptr<Call>& call) {
  call->heartbeat.set_node(node_);
  call->heartbeat.set_incarnation(incarnation_);
  call->heartbeat.set_heartbeat_seq(call->round);
  call->relay_context.set_deadline(std::chrono::system_clock::now() + kPatience);
  call->stub->async()->RelayHeartbeat(
      &call->relay_context, &call->heartbeat, &call->lease,
      [this, call](const grpc::Status& status) {
        if (status.ok() && call->lease.renewed()) {
          heard_(lease::Granted{.heartbeat_seq = call->round,
                                .ttl = FromProto(call->lease.lease().ttl()),
                                .outage_grace = FromProto(call->lease.lease().outage_grace()),
                                .witnesses = {},
                                .is_relayed = true});
        }
        End(call);
      });
}

void WitnessClient::End(const std::shared_ptr<Call>& call) {
  MutexLock lock(mu_);
  calls_.erase(call);
  changed_.NotifyAll();
}

void WitnessClient::Stop() {
  MutexLock lock(mu_);
  stopped_ = true;
  // A call may go from its query to its relay meanwhile: cancel until none is left.
  while (!calls_.empty()) {
    for (const auto& call : calls_) {
      call->query_context.TryCancel();
      call->relay_context.TryCancel();
    }
    changed_.WaitFor(mu_, std::chrono::milliseconds(50));
  }
}

}  // namespace mega::daemon
