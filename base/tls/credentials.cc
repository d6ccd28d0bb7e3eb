#include "base/tls/credentials.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include "fmt/core.h"

namespace mega::tls {
namespace {

using grpc::experimental::TlsCustomVerificationCheckRequest;

// Asked after TLS itself has found the certificate to be of the authority. Here and at once: there
// is nothing to wait for, nor to cancel.
class ServerCheck : public grpc::experimental::ExternalCertificateVerifier {
 public:
  explicit ServerCheck(PeerName server) : server_(std::move(server)) {}

  bool Verify(TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)>,
              grpc::Status* status) override {
    host_.Verify(request, nullptr, status);
    if (!status->ok()) return true;
    const std::optional<PeerName> peer = PeerIn(request->uri_names());
    if (peer == server_) return true;
    *status = {grpc::StatusCode::UNAUTHENTICATED,
               fmt::format("its certificate is of {}, and {} is meant", DescribePeer(peer),
                           Describe(server_))};
    return true;
  }
  void Cancel(TlsCustomVerificationCheckRequest*) override {}

 private:
  const PeerName server_;
  grpc::experimental::HostNameCertificateVerifier host_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> ServerCredentials(const Identity* identity) {
  if (identity == nullptr) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = identity->authority;
  options.pem_key_cert_pairs.push_back({identity->key, identity->certificate});
  return grpc::SslServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> ChannelCredentials(const Identity* identity,
                                                             const PeerName& server) {
  if (identity == nullptr) return grpc::InsecureChannelCredentials();
  namespace experimental = grpc::experimental;
  experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(std::make_shared<experimental::StaticDataCertificateProvider>(
      identity->authority,
      std::vector<experimental::IdentityKeyCertPair>{{identity->key, identity->certificate}}));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_certificate_verifier(
      experimental::ExternalCertificateVerifier::Create<ServerCheck>(server));
  return experimental::TlsCredentials(options);
}

std::optional<PeerName> PeerOf(const grpc::AuthContext& context) {
  return PeerIn(context.FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME));
}

}  // namespace mega::tls
