// Who may call, and what. Over TLS everybody has shown a certificate of the authority, and it says
// what part of the cluster they are; what a user may do then follows from the file of --access.
// Over plain text nobody is known, and everybody may do everything. Which of the two it is, is
// decided when the server starts: the gate knows.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/tls/peer_name.h"
#include "coordinator/service/permissions.h"
#include "coordinator/service/roles.h"
#include "grpcpp/grpcpp.h"

namespace mega::service {

// Behind the gate, nullopt is plain text: over TLS it lets nobody in whom it does not know.
std::optional<tls::PeerName> CallerOf(const grpc::CallbackServerContext& context);

// Over TLS: PERMISSION_DENIED unless the caller is of that kind. Users call the services for users,
// workers those for workers.
grpc::Status CheckCaller(const std::optional<tls::PeerName>& caller, tls::PeerName::Kind wanted);

// Behind the gate: why the caller may not speak for the node; empty: it may.
std::string WhyNotNode(const std::optional<tls::PeerName>& caller, const std::string& node);

// Who makes one call, of which method, and what they may do: as the roles were when it came.
class Caller {
 public:
  // No roles: there is no --access, and who was let in may do everything.
  Caller(std::optional<tls::PeerName> peer, std::shared_ptr<const Roles> roles,
         const Permission& permission)
      : peer_(std::move(peer)), roles_(std::move(roles)), permission_(permission) {}

  // PERMISSION_DENIED where the call can be refused before anybody looks at the request.
  grpc::Status CheckCall() const;
  // PERMISSION_DENIED without the role that the method needs, in that namespace.
  grpc::Status CheckIn(const std::string& name_space) const;
  // May know what is there.
  bool Sees(const std::string& name_space) const;
  bool SeesAll() const { return Sees(kEverywhere); }
  // The namespaces that the caller sees, as an error says them: " in the namespaces that you may
  // look at (default, research)"; empty for who sees all.
  std::string SeenText() const;

  std::string Name() const;  // "user:ada", "anonymous"
  Roles::OfUser RolesByNamespace() const;

 private:
  grpc::Status Denied(Role held, const std::string& where) const;

  std::optional<tls::PeerName> peer_;
  std::shared_ptr<const Roles> roles_;
  const Permission& permission_;
};

}  // namespace mega::service
