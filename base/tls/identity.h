// The certificate with which a program shows who it is, its key, and the authority that it
// believes.
#pragma once

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "base/status.h"
#include "base/tls/peer_name.h"

namespace mega::tls {

// Paths of PEM files. All are given, or none: then the program speaks plain text.
struct Files {
  std::string authority;  // --tls-ca
  std::string
      certificate;  // --tls-cert: the leaf first, then what lies between it and the authority
  std::string key;  // --tls-key, not encrypted
  bool any() const { return !authority.empty() || !certificate.empty() || !key.empty(); }
};

struct Identity {
  std::string authority, certificate, key;  // PEM
  PeerName name;
  absl::Time not_after;  // of the certificate, or of what it is believed by, if that is earlier
};

// INVALID_ARGUMENT where others than its owner and group may read a key, or its group may write it.
// The group may read: so is a secret mounted for a process that is not root's.
absl::Status CheckKeyIsPrivate(const std::string& path);

// Null when no file is given. Otherwise they fit: the key is the certificate's, which is valid at
// `now`, of the authority, and of a peer of that kind, with that name unless it is empty, and may
// be used as one. An error says which file, and the way out.
absl::StatusOr<std::shared_ptr<const Identity>> Load(const Files& files, const PeerName& expected,
                                                     absl::Time now);

}  // namespace mega::tls
