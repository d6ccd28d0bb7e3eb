// Both sides of a connection show a certificate of the authority, or it is plain text.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/tls/identity.h"
#include "grpcpp/security/auth_context.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"

namespace mega::tls {

// Plain text where `identity` is null.
std::shared_ptr<grpc::ServerCredentials> ServerCredentials(const Identity* identity);
// Over TLS whoever answers must be called what was dialled (a host, or NodeServerName), and its
// certificate must be of `server`: a worker is no coordinator, whatever hosts its certificate
// names.
std::shared_ptr<grpc::ChannelCredentials> ChannelCredentials(const Identity* identity,
                                                             const PeerName& server);

// Who is at the other end of a call. nullopt: it is plain text, or the certificate, though of the
// authority, names no part of a cluster. Which of the two is for the server to know, and not for
// the connection to say.
std::optional<PeerName> PeerOf(const grpc::AuthContext& context);

}  // namespace mega::tls
