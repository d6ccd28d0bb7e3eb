// Ends of unary calls.
#pragma once

#include <utility>

#include "coordinator/service/rpc_status.h"
#include "grpcpp/grpcpp.h"
#include "mega/v1/coordinator.pb.h"

namespace mega::service {

inline grpc::ServerUnaryReactor* Done(grpc::CallbackServerContext* context, grpc::Status status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(std::move(status));
  return reactor;
}

// The core's answer to a call that gives a job.
inline grpc::Status FromReply(const v1::ReplyCall& reply, v1::Job& job) {
  if (reply.code() != 0) {
    return RpcError(static_cast<absl::StatusCode>(reply.code()), reply.reason(), reply.message());
  }
  job = reply.job();
  return grpc::Status::OK;
}

}  // namespace mega::service
