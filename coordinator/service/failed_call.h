// A call that ends at once with an error, whatever its shape.
#pragma once

#include <utility>

#include "grpcpp/grpcpp.h"

namespace mega::service {

// `Reactor` is grpc::ServerWriteReactor, ServerReadReactor or ServerBidiReactor of some messages.
template <typename Reactor>
class FailedCall final : public Reactor {
 public:
  explicit FailedCall(grpc::Status status) { this->Finish(std::move(status)); }
  void OnDone() override { delete this; }
};

template <typename Response>
using FailedStream = FailedCall<grpc::ServerWriteReactor<Response>>;

}  // namespace mega::service
