// What other workers may ask of this one. Relaying comes with the control-plane release: until then
// no heartbeat is renewed this way.
#pragma once

#include <functional>

#include "mega/v1/worker.grpc.pb.h"

namespace mega::daemon {

class WitnessService : public v1::WitnessService::CallbackService {
 public:
  // `no_session`: no renewal for half a lease + skew; it must not block.
  WitnessService(std::string node, std::function<bool()> no_session)
      : node_(std::move(node)), no_session_(std::move(no_session)) {}

  grpc::ServerUnaryReactor* QueryWitness(grpc::CallbackServerContext* context,
                                         const v1::QueryWitnessRequest* request,
                                         v1::QueryWitnessResponse* response) override;
  grpc::ServerUnaryReactor* RelayHeartbeat(grpc::CallbackServerContext* context,
                                           const v1::RelayHeartbeatRequest* request,
                                           v1::RelayHeartbeatResponse* response) override;

 private:
  const std::string node_;
  const std::function<bool()> no_session_;
};

}  // namespace mega::daemon
