#include "worker/daemon/witness_service.h"

#include <grpcpp/grpcpp.h>

namespace mega::daemon {

grpc::ServerUnaryReactor* WitnessService::QueryWitness(grpc::CallbackServerContext* context,
                                                       const v1::QueryWitnessRequest* request,
                                                       v1::QueryWitnessResponse* response) {
  response->set_node(node_);
  response->set_no_session(no_session_());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerUnaryReactor* WitnessService::RelayHeartbeat(grpc::CallbackServerContext* context,
                                                         const v1::RelayHeartbeatRequest* request,
                                                         v1::RelayHeartbeatResponse* response) {
  response->set_renewed(false);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace mega::daemon
