// An authority of one's own: it makes the certificates by which the parts of a cluster know each
// other (base/tls). Keys are ECDSA on P-256; all text is PEM.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "base/tls/peer_name.h"

namespace mega::cli {

struct Credential {
  std::string certificate;
  std::string key;
};

struct Validity {
  absl::Time from;
  absl::Time until;
};

absl::StatusOr<Credential> MakeAuthority(const Validity& validity);

// `hosts`: names and addresses by which others reach it; a coordinator needs one, a user has none.
// A node is reached by the name of the node, which it gets without being asked.
absl::StatusOr<Credential> Issue(const Credential& authority, const tls::PeerName& peer,
                                 const std::vector<std::string>& hosts, const Validity& validity);

}  // namespace mega::cli
