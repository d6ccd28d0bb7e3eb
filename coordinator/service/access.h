// Who may call. Over TLS everybody has shown a certificate of the authority, and it says what part
// of the cluster they are; over plain text nobody is known, and everybody may do everything.
#pragma once

#include <optional>
#include <string>

#include "base/tls/peer_name.h"
#include "grpcpp/grpcpp.h"

namespace mega::service {

// nullopt: plain text, or the certificate names no part of a cluster (CheckCaller tells them
// apart).
std::optional<tls::PeerName> CallerOf(const grpc::CallbackServerContext& context);

// PERMISSION_DENIED unless it is plain text or the caller is of that kind. Users call the services
// for users, workers those for workers.
grpc::Status CheckCaller(const grpc::CallbackServerContext& context, tls::PeerName::Kind wanted);

// Why the caller may not speak for the node; empty: it may.
std::string WhyNotNode(const grpc::CallbackServerContext& context, const std::string& node);

}  // namespace mega::service
