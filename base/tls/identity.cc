#include "base/tls/identity.h"

#include <openssl/pem.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "base/read_file.h"
#include "base/tls/openssl.h"

namespace mega::tls {
namespace {

constexpr int64_t kMostFileBytes = 1 << 20;
constexpr size_t kMostCertificates = 1000;  // of one file; each is looked at

using Store = std::unique_ptr<X509_STORE, Free<X509_STORE_free>>;
using StoreContext = std::unique_ptr<X509_STORE_CTX, Free<X509_STORE_CTX_free>>;

absl::Status CheckAllGiven(const Files& files) {
  const std::pair<const char*, const std::string&> all[] = {
      {"--tls-ca", files.authority}, {"--tls-cert", files.certificate}, {"--tls-key", files.key}};
  std::string missing;
  for (const auto& [flag, path] : all) {
    if (path.empty()) missing += (missing.empty() ? "" : " and ") + std::string(flag);
  }
  if (missing.empty()) return absl::OkStatus();
  return InvalidArgument("{} missing: --tls-ca, --tls-cert and --tls-key go together", missing);
}

absl::StatusOr<std::vector<Certificate>> ParseCertificates(const std::string& path,
                                                           const std::string& pem) {
  std::vector<Certificate> found;
  const Bio bio = ReadFrom(pem);
  while (X509* one = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    found.emplace_back(one);
    if (found.size() > kMostCertificates) {
      return InvalidArgument("{}: has more than {} certificates", path, kMostCertificates);
    }
  }
  // The end of the file is "no start line".
  const bool is_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const std::string why = OpenSslError();
  if (!is_end) return InvalidArgument("{}: a certificate is damaged ({})", path, why);
  if (found.empty()) {
    return InvalidArgument("{}: holds no certificate (PEM: -----BEGIN CERTIFICATE-----)", path);
  }
  return found;
}

absl::StatusOr<Key> ParseKey(const std::string& path, const std::string& pem) {
  // Nobody is asked for a password: a daemon has nobody to ask.
  const auto no_password = [](char*, int, int, void*) { return -1; };
  Key key(PEM_read_bio_PrivateKey(ReadFrom(pem).get(), nullptr, no_password, nullptr));
  if (key != nullptr) return key;
  return InvalidArgument(
      "{}: holds no private key that can be used, which is PEM and not encrypted ({})", path,
      OpenSslError());
}

absl::Time TimeOf(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return absl::InfinitePast();
  return absl::FromTM(parts, absl::UTCTimeZone());
}

// OK within the time of the certificate. `way_out` ends the sentence.
absl::Status CheckTime(const std::string& path, const X509* certificate, absl::Time now,
                       std::string_view way_out) {
  const absl::Time from = TimeOf(X509_get0_notBefore(certificate));
  const absl::Time until = TimeOf(X509_get0_notAfter(certificate));
  if (now >= from && now <= until) return absl::OkStatus();
  return InvalidArgument("{}: is valid from {} to {}, and it is {} here; {}, or set the clock",
                         path, absl::FormatTime(from, absl::UTCTimeZone()),
                         absl::FormatTime(until, absl::UTCTimeZone()),
                         absl::FormatTime(now, absl::UTCTimeZone()), way_out);
}

// Until when it is believed.
absl::StatusOr<absl::Time> CheckChain(const Files& files, const std::vector<Certificate>& authority,
                                      const std::vector<Certificate>& chain, absl::Time now) {
  const Store store(X509_STORE_new());
  for (const Certificate& one : authority) X509_STORE_add_cert(store.get(), one.get());
  const std::unique_ptr<STACK_OF(X509), void (*)(STACK_OF(X509)*)> between(
      sk_X509_new_null(), [](STACK_OF(X509) * stack) { sk_X509_free(stack); });
  for (size_t i = 1; i < chain.size(); ++i) sk_X509_push(between.get(), chain[i].get());
  const StoreContext context(X509_STORE_CTX_new());
  if (X509_STORE_CTX_init(context.get(), store.get(), chain[0].get(), between.get()) != 1) {
    return Internal("{}: {}", files.certificate, OpenSslError());
  }
  X509_STORE_CTX_set_time(context.get(), 0, absl::ToTimeT(now));
  if (X509_verify_cert(context.get()) == 1) {
    absl::Time until = absl::InfiniteFuture();
    const STACK_OF(X509)* believed = X509_STORE_CTX_get0_chain(context.get());
    for (int i = 0; i < sk_X509_num(believed); ++i) {
      until = std::min(until, TimeOf(X509_get0_notAfter(sk_X509_value(believed, i))));
    }
    return until;
  }
  const int why = X509_STORE_CTX_get_error(context.get());
  ERR_clear_error();
  MEGA_RETURN_IF_ERROR(
      CheckTime(files.certificate, chain[0].get(), now, "make another with megactl pki issue"));
  if (const X509* at = X509_STORE_CTX_get_current_cert(context.get()); at != nullptr) {
    const bool is_authority = std::ranges::any_of(
        authority, [at](const Certificate& one) { return X509_cmp(one.get(), at) == 0; });
    MEGA_RETURN_IF_ERROR(CheckTime(is_authority ? files.authority : files.certificate, at, now,
                                   is_authority
                                       ? "make an authority with megactl pki init, and "
                                         "everybody's certificates with it"
                                       : "get what lies between it and the authority anew"));
  }
  return InvalidArgument("{}: is not of the authority in {}: {}", files.certificate,
                         files.authority, X509_verify_cert_error_string(why));
}

// As those who dial and those who answer will look at it: better now than at every connection.
absl::Status CheckUsage(const Files& files, X509* certificate, PeerName::Kind kind) {
  struct Usage {
    int purpose;
    const char* words;
    bool is_needed;
  };
  const Usage usages[] = {
      {X509_PURPOSE_SSL_SERVER, "a server's (serverAuth)", kind != PeerName::Kind::kUser},
      {X509_PURPOSE_SSL_CLIENT, "a client's (clientAuth)", kind != PeerName::Kind::kCoordinator}};
  for (const Usage& usage : usages) {
    if (!usage.is_needed || X509_check_purpose(certificate, usage.purpose, 0) == 1) continue;
    ERR_clear_error();
    return InvalidArgument(
        "{}: its key usages do not let it be {}; make one with megactl pki issue, or with "
        "digitalSignature and that extended usage",
        files.certificate, usage.words);
  }
  return absl::OkStatus();
}

std::optional<PeerName> NameIn(const X509* certificate) {
  const std::unique_ptr<GENERAL_NAMES, Free<GENERAL_NAMES_free>> names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string_view> uris;
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* uri = name->d.uniformResourceIdentifier;
    const auto* text = reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri));
    uris.emplace_back(text, static_cast<size_t>(ASN1_STRING_length(uri)));
  }
  return PeerIn(uris);
}

absl::Status CheckName(const Files& files, const std::optional<PeerName>& name,
                       const PeerName& expected) {
  if (!name) {
    return InvalidArgument(
        "{}: names no part of a cluster, such as {}, or more than one; make one with megactl pki "
        "issue",
        files.certificate, ToUri({PeerName::Kind::kNode, "n1"}));
  }
  const bool fits =
      name->kind == expected.kind && (expected.name.empty() || name->name == expected.name);
  if (fits) return absl::OkStatus();
  PeerName wanted = expected;
  if (wanted.name.empty()) wanted.name = "NAME";
  return InvalidArgument("{}: is of {}, and {} is needed here ({})", files.certificate,
                         Describe(*name), Describe(wanted), ToUri(wanted));
}

}  // namespace

absl::Status CheckKeyIsPrivate(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return ErrnoStatus(errno, path);
  if ((info.st_mode & (S_IRWXO | S_IWGRP)) == 0) return absl::OkStatus();
  return InvalidArgument(
      "{}: is open to others (mode {:04o}), and whoever has the key is whom its certificate names; "
      "chmod 600 {}",
      path, info.st_mode & 07777, path);
}

absl::StatusOr<std::shared_ptr<const Identity>> Load(const Files& files, const PeerName& expected,
                                                     absl::Time now) {
  if (!files.any()) return std::shared_ptr<const Identity>();
  MEGA_RETURN_IF_ERROR(CheckAllGiven(files));
  auto identity = std::make_shared<Identity>();
  MEGA_ASSIGN_OR_RETURN(identity->authority, ReadRegularFile(files.authority, kMostFileBytes));
  MEGA_ASSIGN_OR_RETURN(identity->certificate, ReadRegularFile(files.certificate, kMostFileBytes));
  MEGA_ASSIGN_OR_RETURN(identity->key, ReadRegularFile(files.key, kMostFileBytes));
  MEGA_RETURN_IF_ERROR(CheckKeyIsPrivate(files.key));
  MEGA_ASSIGN_OR_RETURN(const std::vector<Certificate> authority,
                        ParseCertificates(files.authority, identity->authority));
  MEGA_ASSIGN_OR_RETURN(const std::vector<Certificate> chain,
                        ParseCertificates(files.certificate, identity->certificate));
  MEGA_ASSIGN_OR_RETURN(const Key key, ParseKey(files.key, identity->key));
  if (X509_check_private_key(chain[0].get(), key.get()) != 1) {
    ERR_clear_error();
    return InvalidArgument("{}: is not the key of the certificate in {}", files.key,
                           files.certificate);
  }
  MEGA_ASSIGN_OR_RETURN(identity->not_after, CheckChain(files, authority, chain, now));
  const std::optional<PeerName> name = NameIn(chain[0].get());
  MEGA_RETURN_IF_ERROR(CheckName(files, name, expected));
  MEGA_RETURN_IF_ERROR(CheckUsage(files, chain[0].get(), name->kind));
  identity->name = *name;
  return identity;
}

}  // namespace mega::tls
