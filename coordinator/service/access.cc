#include "coordinator/service/access.h"

#include <vector>

#include "absl/strings/str_join.h"
#include "base/tls/credentials.h"
#include "coordinator/service/rpc_status.h"
#include "fmt/core.h"

namespace mega::service {
namespace {

constexpr size_t kNamed = 3;

const char* Called(tls::PeerName::Kind kind) {
  return kind == tls::PeerName::Kind::kUser ? "users" : "workers";
}

std::string SomeOf(const std::vector<std::string>& names) {
  if (names.empty()) return "nobody";
  const size_t shown = std::min(names.size(), kNamed);
  std::string text =
      absl::StrJoin(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", ");
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

}  // namespace

std::optional<tls::PeerName> CallerOf(const grpc::CallbackServerContext& context) {
  return tls::PeerOf(*context.auth_context());
}

grpc::Status CheckCaller(const std::optional<tls::PeerName>& caller, tls::PeerName::Kind wanted) {
  if (caller && caller->kind == wanted) return grpc::Status::OK;
  return RpcError(absl::StatusCode::kPermissionDenied, "CALLER_NOT_ALLOWED",
                  fmt::format("the certificate is of {}, and only {} may call this; make one with "
                              "megactl pki issue",
                              tls::DescribePeer(caller), Called(wanted)));
}

std::string WhyNotNode(const std::optional<tls::PeerName>& caller, const std::string& node) {
  if (!caller || caller == tls::PeerName{tls::PeerName::Kind::kNode, node}) return "";
  return fmt::format("the worker says that it is node '{}', and its certificate is of {}", node,
                     tls::DescribePeer(caller));
}

grpc::Status Caller::CheckCall() const {
  if (roles_ == nullptr || permission_.role == Role::kNone) return grpc::Status::OK;
  switch (permission_.scope) {
    case Scope::kNobody:
    case Scope::kWorker:
      return grpc::Status::OK;
    case Scope::kCluster:
      return CheckIn(kEverywhere);
    case Scope::kNamespace:  // that one is asked for its role; who has none anywhere sees nothing
    case Scope::kAnyNamespace:
      break;
  }
  const Role highest = roles_->Highest(peer_->name);
  const Role needed = permission_.scope == Scope::kNamespace ? Role::kViewer : permission_.role;
  if (highest >= needed) return grpc::Status::OK;
  return Denied(highest, "any namespace");
}

grpc::Status Caller::CheckIn(const std::string& name_space) const {
  if (roles_ == nullptr) return grpc::Status::OK;
  const Role held = roles_->In(peer_->name, name_space);
  if (held >= permission_.role) return grpc::Status::OK;
  return Denied(held, name_space == kEverywhere ? "all namespaces"
                                                : fmt::format("namespace '{}'", name_space));
}

grpc::Status Caller::Denied(Role held, const std::string& where) const {
  return RpcError(
      absl::StatusCode::kPermissionDenied, "ROLE_MISSING",
      fmt::format("user '{}' has {}{} in {}, and {} needs the role {} there; who may write {} on "
                  "the coordinator's machine can give it (admins: {})",
                  peer_->name, held == Role::kNone ? "" : "the role ", NameOf(held), where,
                  permission_.method, NameOf(permission_.role), roles_->source(),
                  SomeOf(roles_->Admins())),
      {{"user", peer_->name},
       {"method", std::string(permission_.method)},
       {"role", NameOf(held)},
       {"needed", NameOf(permission_.role)}});
}

bool Caller::Sees(const std::string& name_space) const {
  return roles_ == nullptr || roles_->In(peer_->name, name_space) >= Role::kViewer;
}

std::string Caller::SeenText() const {
  if (SeesAll()) return "";
  std::vector<std::string> seen;
  for (const auto& [name_space, role] : roles_->Of(peer_->name)) seen.push_back(name_space);
  return fmt::format(" in the namespaces that you may look at ({})", SomeOf(seen));
}

std::string Caller::Name() const { return peer_ ? tls::ShortName(*peer_) : "anonymous"; }

Roles::OfUser Caller::RolesByNamespace() const {
  if (roles_ == nullptr) return {{kEverywhere, Role::kAdmin}};
  return roles_->Of(peer_->name);
}

}  // namespace mega::service
