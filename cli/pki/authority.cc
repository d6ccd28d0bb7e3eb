#include "cli/pki/authority.h"

#include <arpa/inet.h>
#include <openssl/pem.h>
#include <openssl/rand.h>

#include <array>
#include <memory>
#include <utility>

#include "base/dns_name.h"
#include "base/tls/openssl.h"

namespace mega::cli {
namespace {

using tls::Bio;
using tls::Certificate;
using tls::Free;
using tls::Key;
using tls::OpenSslError;

absl::Status Failure(std::string_view what) { return Internal("{}: {}", what, OpenSslError()); }

bool IsAddress(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes;
  return inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

// As OpenSSL reads them: "URI:…,DNS:…,IP:…". Neither a name nor an address has a comma.
absl::StatusOr<std::string> AlternativeNames(const tls::PeerName& peer,
                                             const std::vector<std::string>& hosts) {
  std::string names = "URI:" + tls::ToUri(peer);
  if (tls::ParsePeerUri(tls::ToUri(peer)) != peer) {
    return InvalidArgument("{} cannot stand in a certificate: {}", tls::Describe(peer),
                           peer.kind == tls::PeerName::Kind::kNode
                               ? fmt::format("a node's name has at most {} characters and is {}",
                                             tls::kMostNodeName, kHostNameRule)
                               : fmt::format("a user's name is {}", tls::kUserNameRule));
  }
  if (peer.kind == tls::PeerName::Kind::kNode) names += ",DNS:" + tls::NodeServerName(peer.name);
  for (const std::string& host : hosts) {
    if (!IsAddress(host) && !IsHostName(host)) {
      return InvalidArgument("'{}' is neither the name of a host, which is {}, nor an address",
                             host, kHostNameRule);
    }
    names += (IsAddress(host) ? ",IP:" : ",DNS:") + host;
  }
  return names;
}

bool AddExtension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, Free<X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

// A certificate of `key` with a random number, and nothing said yet.
Certificate Begin(EVP_PKEY* key, const std::string& common_name, const Validity& validity) {
  Certificate certificate(X509_new());
  std::array<unsigned char, 16> number;
  if (certificate == nullptr || RAND_bytes(number.data(), number.size()) != 1) return nullptr;
  number[0] &= 0x7F;  // it is positive
  const std::unique_ptr<BIGNUM, Free<BN_free>> serial(
      BN_bin2bn(number.data(), number.size(), nullptr));
  X509_NAME* name = X509_get_subject_name(certificate.get());
  const bool is_made =
      X509_set_version(certificate.get(), X509_VERSION_3) == 1 && serial != nullptr &&
      BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(certificate.get())) != nullptr &&
      X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(common_name.c_str()), -1,
                                 -1, 0) == 1 &&
      ASN1_TIME_set(X509_getm_notBefore(certificate.get()), absl::ToTimeT(validity.from)) !=
          nullptr &&
      ASN1_TIME_set(X509_getm_notAfter(certificate.get()), absl::ToTimeT(validity.until)) !=
          nullptr &&
      X509_set_pubkey(certificate.get(), key) == 1;
  return is_made ? std::move(certificate) : nullptr;
}

absl::StatusOr<Credential> ToPem(X509* certificate, EVP_PKEY* key) {
  const Bio certificate_text(BIO_new(BIO_s_mem()));
  const Bio key_text(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(certificate_text.get(), certificate) != 1 ||
      PEM_write_bio_PKCS8PrivateKey(key_text.get(), key, nullptr, nullptr, 0, nullptr, nullptr) !=
          1) {
    return Failure("a certificate cannot be written");
  }
  return Credential{tls::TextOf(certificate_text.get()), tls::TextOf(key_text.get())};
}

}  // namespace

absl::StatusOr<Credential> MakeAuthority(const Validity& validity) {
  const Key key(EVP_EC_gen("P-256"));
  if (key == nullptr) return Failure("no key can be made");
  const Certificate certificate = Begin(key.get(), "mega authority", validity);
  if (certificate == nullptr ||
      X509_set_issuer_name(certificate.get(), X509_get_subject_name(certificate.get())) != 1 ||
      !AddExtension(certificate.get(), certificate.get(), NID_basic_constraints,
                    "critical,CA:TRUE,pathlen:0") ||
      !AddExtension(certificate.get(), certificate.get(), NID_key_usage,
                    "critical,keyCertSign,cRLSign") ||
      !AddExtension(certificate.get(), certificate.get(), NID_subject_key_identifier, "hash") ||
      X509_sign(certificate.get(), key.get(), EVP_sha256()) == 0) {
    return Failure("the authority cannot be made");
  }
  return ToPem(certificate.get(), key.get());
}

absl::StatusOr<Credential> Issue(const Credential& authority, const tls::PeerName& peer,
                                 const std::vector<std::string>& hosts, const Validity& validity) {
  MEGA_ASSIGN_OR_RETURN(const std::string names, AlternativeNames(peer, hosts));
  const Certificate issuer(
      PEM_read_bio_X509(tls::ReadFrom(authority.certificate).get(), nullptr, nullptr, nullptr));
  const Key issuer_key(
      PEM_read_bio_PrivateKey(tls::ReadFrom(authority.key).get(), nullptr, nullptr, nullptr));
  if (issuer == nullptr || issuer_key == nullptr ||
      X509_check_private_key(issuer.get(), issuer_key.get()) != 1) {
    return InvalidArgument("these are no certificate of an authority and its key ({})",
                           OpenSslError());
  }
  const Key key(EVP_EC_gen("P-256"));
  if (key == nullptr) return Failure("no key can be made");
  const Certificate certificate =
      Begin(key.get(), tls::Describe(peer).substr(0, 64), validity);  // X.520 allows no more
  const char* usage = peer.kind == tls::PeerName::Kind::kUser   ? "clientAuth"
                      : peer.kind == tls::PeerName::Kind::kNode ? "serverAuth,clientAuth"
                                                                : "serverAuth";
  if (certificate == nullptr ||
      X509_set_issuer_name(certificate.get(), X509_get_subject_name(issuer.get())) != 1 ||
      !AddExtension(certificate.get(), issuer.get(), NID_basic_constraints, "critical,CA:FALSE") ||
      !AddExtension(certificate.get(), issuer.get(), NID_key_usage, "critical,digitalSignature") ||
      !AddExtension(certificate.get(), issuer.get(), NID_ext_key_usage, usage) ||
      !AddExtension(certificate.get(), issuer.get(), NID_subject_alt_name, names) ||
      !AddExtension(certificate.get(), issuer.get(), NID_authority_key_identifier, "keyid") ||
      X509_sign(certificate.get(), issuer_key.get(), EVP_sha256()) == 0) {
    return Failure("the certificate cannot be made");
  }
  return ToPem(certificate.get(), key.get());
}

}  // namespace mega::cli
