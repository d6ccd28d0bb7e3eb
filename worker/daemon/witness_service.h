// What other workers may ask of this one when they cannot reach the coordinator: has it a session,
// and will it carry a heartbeat there and the answer back.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "base/grpc_server/grpc_server.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/tls/identity.h"
#include "mega/v1/worker.grpc.pb.h"

namespace mega::daemon {

class WitnessService : public v1::WitnessService::CallbackService {
 public:
  // Called from gRPC's threads; they must not block.
  struct Callbacks {
    std::function<bool()> no_session;  // no renewal for half a lease + skew
    // Sends it to the coordinator; the answer comes by Relayed. False: there is no session.
    std::function<bool(v1::RelayedHeartbeat)> relay;
  };
  // `is_tls`: a node asks for itself alone; over plain text everybody asks for all.
  WitnessService(const v1::Node& self, bool is_tls, Callbacks callbacks)
      : node_(self.name()),
        incarnation_(self.incarnation()),
        is_tls_(is_tls),
        callbacks_(std::move(callbacks)) {}

  // The coordinator has answered one of those that were sent.
  void Relayed(const v1::RelayedLease& lease);
  // What was sent in the session and has no answer will not get one: those who asked are told.
  void SessionOver();

  grpc::ServerUnaryReactor* QueryWitness(grpc::CallbackServerContext* context,
                                         const v1::QueryWitnessRequest* request,
                                         v1::QueryWitnessResponse* response) override;
  grpc::ServerUnaryReactor* RelayHeartbeat(grpc::CallbackServerContext* context,
                                           const v1::RelayHeartbeatRequest* request,
                                           v1::RelayHeartbeatResponse* response) override;

 private:
  class Waiting;
  using Key = std::tuple<std::string, int64_t, int64_t>;  // node, incarnation, heartbeat
  grpc::Status CheckAsker(const grpc::CallbackServerContext& context,
                          const std::string& node) const;
  // Whoever takes one out finishes it.
  Waiting* Take(const Key& key);
  bool Take(const Waiting* waiting);
  Waiting* TakeOldestBeyond(const std::string& node) MEGA_REQUIRES(mu_);

  const std::string node_;
  const int64_t incarnation_;
  const bool is_tls_;
  const Callbacks callbacks_;
  Mutex mu_;
  std::map<Key, Waiting*> waiting_ MEGA_GUARDED_BY(mu_);
};

// Until the server is destroyed, on `listen` (--listen). Plain text where `identity` is null.
absl::StatusOr<std::unique_ptr<GrpcServer>> Serve(WitnessService& service,
                                                  const ListenAddress& listen,
                                                  const tls::Identity* identity);

}  // namespace mega::daemon
