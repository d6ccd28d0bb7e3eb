// ClusterService.WhoAmI: whom the certificate names, and what such a one may do.
#include "coordinator/service/rpc/rpcs.h"
#include "coordinator/service/unary.h"

namespace mega::service {

grpc::ServerUnaryReactor* WhoAmI(const Shell&, const Caller& caller, Context* context,
                                 v1::WhoAmIResponse& response) {
  response.set_user(caller.Name());
  for (const auto& [name_space, role] : caller.RolesByNamespace())
    (*response.mutable_roles())[name_space] = NameOf(role);
  return Done(context, grpc::Status::OK);
}

}  // namespace mega::service
