// ClusterService.WhoAmI: whom the certificate names, and what such a one may do.
#include "coordinator/service/access.h"
#include "coordinator/service/rpc/rpcs.h"
#include "coordinator/service/unary.h"

namespace mega::service {

grpc::ServerUnaryReactor* WhoAmI(const Shell&, Context* context, v1::WhoAmIResponse& response) {
  const std::optional<tls::PeerName> caller = CallerOf(*context);
  response.set_user(caller ? "user:" + caller->name : "anonymous");
  (*response.mutable_roles())["*"] = "admin";  // whoever is let in may do everything
  return Done(context, grpc::Status::OK);
}

}  // namespace mega::service
