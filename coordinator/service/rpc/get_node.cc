#include "coordinator/service/rpc/rpcs.h"
#include "coordinator/service/unary.h"

namespace mega::service {

grpc::ServerUnaryReactor* GetNode(const Shell& shell, Context* context,
                                  const v1::GetNodeRequest& request, v1::Node& node) {
  constexpr std::string_view kNodes = "nodes/";
  std::optional<v1::Node> found = shell.reads.Node(request.name());
  if (!found && request.name().starts_with(kNodes)) {
    found = shell.reads.Node(request.name().substr(kNodes.size()));
  }
  if (!found) {
    return Done(context, ResourceNotFound("node", request.name(),
                                          fmt::format("no node '{}'; megactl nodes lists them",
                                                      request.name())));
  }
  node = *std::move(found);
  return Done(context, grpc::Status::OK);
}

}  // namespace mega::service
