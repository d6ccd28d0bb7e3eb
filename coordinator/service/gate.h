// The port opens before the state is loaded, which may take a while: until then every call is
// refused with a reason, so that clients, workers and probes hear more than a closed port. And each
// service is for one kind of callers.
#pragma once

#include <atomic>
#include <type_traits>
#include <utility>

#include "base/tls/peer_name.h"
#include "coordinator/service/access.h"
#include "coordinator/service/failed_call.h"
#include "coordinator/service/rpc_status.h"
#include "coordinator/service/shell.h"
#include "coordinator/service/unary.h"
#include "grpcpp/grpcpp.h"

namespace mega::service {

class Gate {
 public:
  // `callers`: who may call what is behind it, where the server speaks TLS.
  Gate(tls::PeerName::Kind callers, bool is_tls) : callers_(callers), is_tls_(is_tls) {}

  // From now on calls go to their RPCs. `shell` outlives the server.
  void Open(const Shell& shell) { shell_.store(&shell, std::memory_order_release); }

  // rpc(shell, [context,] args…), or a reactor that ends the call: with UNAVAILABLE, or with
  // PERMISSION_DENIED.
  template <typename Reactor, typename... Params, typename... Args>
  Reactor* Call(Reactor* (*rpc)(const Shell&, Params...), grpc::CallbackServerContext* context,
                Args&&... args) const {
    if (is_tls_) {
      grpc::Status status = CheckCaller(CallerOf(*context), callers_);
      if (!status.ok()) return Refuse<Reactor>(context, std::move(status));
    }
    const Shell* shell = shell_.load(std::memory_order_acquire);
    if (shell == nullptr) {
      return Refuse<Reactor>(
          context,
          RpcError(absl::StatusCode::kUnavailable, "STATE_LOADING",
                   "the coordinator has started and is loading its state; try again in a moment"));
    }
    if constexpr (std::is_invocable_v<decltype(rpc), const Shell&, decltype(context), Args...>) {
      return rpc(*shell, context, std::forward<Args>(args)...);
    } else {
      return rpc(*shell, std::forward<Args>(args)...);
    }
  }

 private:
  template <typename Reactor>
  static Reactor* Refuse(grpc::CallbackServerContext* context, grpc::Status status) {
    if constexpr (std::is_same_v<Reactor, grpc::ServerUnaryReactor>) {
      return Done(context, std::move(status));
    } else {
      return new FailedCall<Reactor>(std::move(status));
    }
  }

  const tls::PeerName::Kind callers_;
  const bool is_tls_;
  std::atomic<const Shell*> shell_ = nullptr;
};

}  // namespace mega::service
