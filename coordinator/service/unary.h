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

// The core's answer to a call, and what it gives.
inline grpc::Status FromReply(const v1::ReplyCall& reply) {
  if (reply.code() == 0) return grpc::Status::OK;
  return RpcError(static_cast<absl::StatusCode>(reply.code()), reply.reason(), reply.message());
}
inline grpc::Status FromReply(const v1::ReplyCall& reply, v1::Job& job) {
  if (reply.code() == 0) job = reply.job();
  return FromReply(reply);
}
inline grpc::Status FromReply(const v1::ReplyCall& reply, v1::Node& node) {
  if (reply.code() == 0) node = reply.node();
  return FromReply(reply);
}
inline grpc::Status FromReply(const v1::ReplyCall& reply, v1::Namespace& limits) {
  if (reply.code() == 0) limits = reply.namespace_();
  return FromReply(reply);
}
inline grpc::Status FromReply(const v1::ReplyCall& reply, v1::Manifest& manifest) {
  if (reply.code() == 0) manifest = reply.manifest();
  return FromReply(reply);
}
inline grpc::Status FromReply(const v1::ReplyCall& reply, v1::DeleteNamespaceResponse&) {
  return FromReply(reply);
}

}  // namespace mega::service
