#include "base/tls/credentials.h"

#include <grpc/grpc_security_constants.h>

namespace mega::tls {

std::shared_ptr<grpc::ServerCredentials> ServerCredentials(const Identity* identity) {
  if (identity == nullptr) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = identity->authority;
  options.pem_key_cert_pairs.push_back({identity->key, identity->certificate});
  return grpc::SslServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> ChannelCredentials(const Identity* identity) {
  if (identity == nullptr) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = identity->authority;
  options.pem_private_key = identity->key;
  options.pem_cert_chain = identity->certificate;
  return grpc::SslCredentials(options);
}

std::optional<PeerName> PeerOf(const grpc::AuthContext& context) {
  for (const grpc::string_ref& uri : context.FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME)) {
    if (auto peer = ParsePeerUri({uri.data(), uri.size()})) return peer;
  }
  return std::nullopt;
}

bool IsAuthenticated(const grpc::AuthContext& context) { return context.IsPeerAuthenticated(); }

bool MaySpeakFor(const grpc::AuthContext& context, const std::string& node) {
  return !IsAuthenticated(context) || PeerOf(context) == PeerName{PeerName::Kind::kNode, node};
}

std::string DescribePeer(const grpc::AuthContext& context) {
  const std::optional<PeerName> peer = PeerOf(context);
  return peer ? Describe(*peer) : "no part of a cluster";
}

}  // namespace mega::tls
