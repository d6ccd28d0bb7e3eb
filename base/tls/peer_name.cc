#include "base/tls/peer_name.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "base/dns_name.h"
#include "fmt/core.h"

namespace mega::tls {
namespace {

constexpr std::string_view kRoot = "spiffe://mega/";
constexpr std::string_view kCoordinator = "coordinator";
constexpr std::string_view kNode = "node/";
constexpr std::string_view kUser = "user/";
constexpr size_t kMostUserName = 128;

bool IsLetterOrDigit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool IsNodeName(std::string_view name) { return name.size() <= kMostNodeName && IsHostName(name); }

}  // namespace

bool IsUserName(std::string_view name) {
  return !name.empty() && name.size() <= kMostUserName && IsLetterOrDigit(name.front()) &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return IsLetterOrDigit(c) || c == '.' || c == '_' || c == '-' || c == '@';
         });
}

std::string ToUri(const PeerName& peer) {
  switch (peer.kind) {
    case PeerName::Kind::kCoordinator:
      return fmt::format("{}{}", kRoot, kCoordinator);
    case PeerName::Kind::kNode:
      return fmt::format("{}{}{}", kRoot, kNode, peer.name);
    case PeerName::Kind::kUser:
      return fmt::format("{}{}{}", kRoot, kUser, peer.name);
  }
  return "";
}

std::optional<PeerName> ParsePeerUri(std::string_view uri) {
  if (!uri.starts_with(kRoot)) return std::nullopt;
  uri.remove_prefix(kRoot.size());
  if (uri == kCoordinator) return PeerName{PeerName::Kind::kCoordinator, ""};
  if (uri.starts_with(kNode) && IsNodeName(uri.substr(kNode.size()))) {
    return PeerName{PeerName::Kind::kNode, std::string(uri.substr(kNode.size()))};
  }
  if (uri.starts_with(kUser) && IsUserName(uri.substr(kUser.size()))) {
    return PeerName{PeerName::Kind::kUser, std::string(uri.substr(kUser.size()))};
  }
  return std::nullopt;
}

std::optional<PeerName> PeerIn(std::span<const std::string_view> uris) {
  std::string_view found;
  for (const std::string_view uri : uris) {
    if (!absl::StartsWithIgnoreCase({uri.data(), uri.size()}, {kRoot.data(), kRoot.size()})) {
      continue;
    }
    if (!found.empty()) return std::nullopt;
    found = uri;
  }
  return ParsePeerUri(found);
}

std::string Describe(const PeerName& peer) {
  switch (peer.kind) {
    case PeerName::Kind::kCoordinator:
      return "a coordinator";
    case PeerName::Kind::kNode:
      return fmt::format("node '{}'", peer.name);
    case PeerName::Kind::kUser:
      return fmt::format("user '{}'", peer.name);
  }
  return "";
}

std::string DescribePeer(const std::optional<PeerName>& peer) {
  return peer ? Describe(*peer) : "no part of a cluster";
}

std::string ShortName(const PeerName& peer) {
  switch (peer.kind) {
    case PeerName::Kind::kCoordinator:
      return "coordinator";
    case PeerName::Kind::kNode:
      return "node:" + peer.name;
    case PeerName::Kind::kUser:
      return "user:" + peer.name;
  }
  return "";
}

std::string NodeServerName(std::string_view node) { return fmt::format("{}.node.mega", node); }

}  // namespace mega::tls
