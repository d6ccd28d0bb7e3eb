// A client's call that the core decides: the answer leaves when the decision is durable.
#pragma once

#include <optional>
#include <utility>

#include "coordinator/service/job_names.h"
#include "coordinator/service/rpc_status.h"
#include "coordinator/service/shell.h"
#include "coordinator/service/unary.h"
#include "mega/v1/coordinator.pb.h"

namespace mega::service {

// What a successful answer gives to whom asked. A job is taken from the readers, who were told of
// it before: the record of a large one fits no message.
inline grpc::Status Give(const ReadModel& reads, const v1::ReplyCall& reply, v1::Job& job) {
  std::optional<v1::Job> view = reads.Job(reply.job().uid());
  if (!view) return JobGone(reply.job().uid());
  job = *std::move(view);
  return grpc::Status::OK;
}
inline grpc::Status Give(const ReadModel&, const v1::ReplyCall& reply, v1::Node& node) {
  node = reply.node();
  return grpc::Status::OK;
}
inline grpc::Status Give(const ReadModel&, const v1::ReplyCall& reply, v1::Namespace& limits) {
  limits = reply.namespace_();
  return grpc::Status::OK;
}
inline grpc::Status Give(const ReadModel&, const v1::ReplyCall& reply, v1::Manifest& manifest) {
  manifest = reply.manifest();
  return grpc::Status::OK;
}
inline grpc::Status Give(const ReadModel&, const v1::ReplyCall&, v1::DeleteNamespaceResponse&) {
  return grpc::Status::OK;
}

// Finishes `reactor` once, with the core's answer in `response` or with an error.
template <typename Response>
void AskCore(const Shell& shell, v1::CoreEvent event, grpc::ServerUnaryReactor* reactor,
             Response& response) {
  const auto answer = [&reads = shell.reads, reactor, &response](const v1::ReplyCall& reply) {
    reactor->Finish(reply.code() == 0 ? Give(reads, reply, response)
                                      : RpcError(static_cast<absl::StatusCode>(reply.code()),
                                                 reply.reason(), reply.message()));
  };
  if (!shell.loop.Call(std::move(event), answer)) {
    reactor->Finish(Overloaded("the coordinator has too many calls waiting; try again in a second",
                               absl::Seconds(1)));
  }
}

}  // namespace mega::service
