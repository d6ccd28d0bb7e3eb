// Who may call. Over TLS everybody has shown a certificate of the authority, and it says what part
// of the cluster they are; over plain text nobody is known, and everybody may do everything. Which
// of the two it is, is decided when the server starts: the gate knows.
#pragma once

#include <optional>
#include <string>

#include "base/tls/peer_name.h"
#include "grpcpp/grpcpp.h"

namespace mega::service {

// Behind the gate, nullopt is plain text: over TLS it lets nobody in whom it does not know.
std::optional<tls::PeerName> CallerOf(const grpc::CallbackServerContext& context);

// Over TLS: PERMISSION_DENIED unless the caller is of that kind. Users call the services for users,
// workers those for workers.
grpc::Status CheckCaller(const std::optional<tls::PeerName>& caller, tls::PeerName::Kind wanted);

// Behind the gate: why the caller may not speak for the node; empty: it may.
std::string WhyNotNode(const std::optional<tls::PeerName>& caller, const std::string& node);

}  // namespace mega::service
