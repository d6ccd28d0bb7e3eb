// Ends of unary calls.
#pragma once

#include <utility>

#include "coordinator/service/rpc_status.h"
#include "grpcpp/grpcpp.h"

namespace mega::service {

inline grpc::ServerUnaryReactor* Done(grpc::CallbackServerContext* context, grpc::Status status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(std::move(status));
  return reactor;
}

}  // namespace mega::service
