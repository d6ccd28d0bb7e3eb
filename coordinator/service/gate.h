// The port opens before the state is loaded, which may take a while: until then every call is
// refused with a reason, so that clients, workers and probes hear more than a closed port.
#pragma once

#include <atomic>
#include <tuple>
#include <type_traits>
#include <utility>

#include "coordinator/service/failed_call.h"
#include "coordinator/service/rpc_status.h"
#include "coordinator/service/shell.h"
#include "coordinator/service/unary.h"
#include "grpcpp/grpcpp.h"

namespace mega::service {

class Gate {
 public:
  // From now on calls go to their RPCs. `shell` outlives the server.
  void Open(const Shell& shell) { shell_.store(&shell, std::memory_order_release); }

  // rpc(shell, args…), or a reactor that ends the call with UNAVAILABLE.
  template <typename Reactor, typename... Params, typename... Args>
  Reactor* Call(Reactor* (*rpc)(const Shell&, Params...), Args&&... args) const {
    if (const Shell* shell = shell_.load(std::memory_order_acquire)) {
      return rpc(*shell, std::forward<Args>(args)...);
    }
    grpc::Status loading =
        RpcError(absl::StatusCode::kUnavailable, "STATE_LOADING",
                 "the coordinator has started and is loading its state; try again in a moment");
    if constexpr (std::is_same_v<Reactor, grpc::ServerUnaryReactor>) {
      return Done(std::get<0>(std::tie(args...)), std::move(loading));
    } else {
      return new FailedCall<Reactor>(std::move(loading));
    }
  }

 private:
  std::atomic<const Shell*> shell_ = nullptr;
};

}  // namespace mega::service
