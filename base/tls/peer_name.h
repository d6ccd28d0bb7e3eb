// Who a part of the cluster is to the others: a URI in its certificate.
//   spiffe://mega/coordinator    spiffe://mega/node/NAME    spiffe://mega/user/NAME
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mega::tls {

struct PeerName {
  enum class Kind { kCoordinator, kNode, kUser };
  Kind kind = Kind::kUser;
  std::string name;  // of a node as in its hello; a coordinator has none

  friend bool operator==(const PeerName&, const PeerName&) = default;
};

inline constexpr char kUserNameRule[] =
    "1 to 128 of letters, digits and . _ - @, beginning with a letter or digit";
bool IsUserName(std::string_view name);

inline constexpr size_t kMostNodeName = 243;  // NodeServerName is a name of DNS, too

std::string ToUri(const PeerName& peer);
// Exact: no letter may be of another case. nullopt: a URI of something else.
std::optional<PeerName> ParsePeerUri(std::string_view uri);

// The one that a certificate with these URIs is of. nullopt: none of them names one, or there is
// more than one beneath spiffe://mega/, however it is written: which of them counts must not depend
// on their order.
std::optional<PeerName> PeerIn(std::span<const std::string_view> uris);
template <typename Strings>  // with data() and size()
std::optional<PeerName> PeerIn(const Strings& uris) {
  std::vector<std::string_view> views;
  for (const auto& uri : uris) views.emplace_back(uri.data(), uri.size());
  return PeerIn(std::span<const std::string_view>(views));
}

// "node 'n1'", "user 'ada'", "a coordinator"; "no part of a cluster" of whom PeerIn did not find.
std::string Describe(const PeerName& peer);
std::string DescribePeer(const std::optional<PeerName>& peer);

// "node:n1", "user:ada", "coordinator": where a program reads it.
std::string ShortName(const PeerName& peer);

// The DNS name that a node's certificate has beside its URI, whatever the machine is called: other
// workers ask for it, and no host of a coordinator is called so.
std::string NodeServerName(std::string_view node);

}  // namespace mega::tls
