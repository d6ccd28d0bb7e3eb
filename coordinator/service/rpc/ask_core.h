// A client's call that the core decides: the answer leaves when the decision is durable.
#pragma once

#include <utility>

#include "coordinator/service/shell.h"
#include "coordinator/service/unary.h"

namespace mega::service {

// Finishes `reactor` once, with the core's answer in `response` or with an error.
template <typename Response>
void AskCore(const Shell& shell, v1::CoreEvent event, grpc::ServerUnaryReactor* reactor,
             Response& response) {
  const bool taken =
      shell.loop.Call(std::move(event), [reactor, &response](const v1::ReplyCall& reply) {
        reactor->Finish(FromReply(reply, response));
      });
  if (!taken) {
    reactor->Finish(Overloaded("the coordinator has too many calls waiting", absl::Seconds(1)));
  }
}

}  // namespace mega::service
