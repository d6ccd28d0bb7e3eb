// The port opens before the state is loaded, which may take a while: until then every call is
// refused with a reason, so that clients, workers and probes hear more than a closed port. And each
// service is for one kind of callers, of whom each may do what the roles say.
#pragma once

#include <atomic>
#include <type_traits>
#include <utility>

#include "base/tls/peer_name.h"
#include "coordinator/service/access.h"
#include "coordinator/service/access_file.h"
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

  // Over TLS, users may do what the file says. Before the server starts; it outlives the server.
  void Restrict(const AccessFile& file) { access_ = &file; }
  // From now on calls go to their RPCs. `shell` outlives the server.
  void Open(const Shell& shell) { shell_.store(&shell, std::memory_order_release); }

  // rpc(shell, [caller,] [context,] args…), or a reactor that ends the call: with UNAVAILABLE, or
  // with PERMISSION_DENIED. What an rpc needs of its caller in a namespace it asks the caller.
  template <typename Reactor, typename... Params, typename... Args>
  Reactor* Call(const Permission& permission, Reactor* (*rpc)(const Shell&, Params...),
                grpc::CallbackServerContext* context, Args&&... args) const {
    std::optional<tls::PeerName> peer;
    if (is_tls_) {
      peer = CallerOf(*context);
      grpc::Status status = CheckCaller(peer, callers_);
      if (!status.ok()) return Refuse<Reactor>(context, std::move(status));
    }
    const Caller caller(std::move(peer), access_ == nullptr ? nullptr : access_->roles(),
                        permission);
    if (grpc::Status status = caller.CheckCall(); !status.ok())
      return Refuse<Reactor>(context, std::move(status));
    const Shell* shell = shell_.load(std::memory_order_acquire);
    if (shell == nullptr) {
      return Refuse<Reactor>(
          context,
          RpcError(absl::StatusCode::kUnavailable, "STATE_LOADING",
                   "the coordinator has started and is loading its state; try again in a moment"));
    }
    using Rpc = decltype(rpc);
    if constexpr (std::is_invocable_v<Rpc, const Shell&, const Caller&, decltype(context),
                                      Args...>) {
      return rpc(*shell, caller, context, std::forward<Args>(args)...);
    } else if constexpr (std::is_invocable_v<Rpc, const Shell&, const Caller&, Args...>) {
      return rpc(*shell, caller, std::forward<Args>(args)...);
    } else if constexpr (std::is_invocable_v<Rpc, const Shell&, decltype(context), Args...>) {
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
  const AccessFile* access_ = nullptr;  // null: who is let in may do everything
  std::atomic<const Shell*> shell_ = nullptr;
};

}  // namespace mega::service
