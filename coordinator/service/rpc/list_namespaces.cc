// ClusterService.ListNamespaces: those with limits or unfinished jobs, by name.
#include "coordinator/service/page_token.h"
#include "coordinator/service/rpc/rpcs.h"
#include "coordinator/service/unary.h"

namespace mega::service {
namespace {

constexpr char kQuery[] = "namespaces";

grpc::Status List(const ReadModel& reads, const Caller& caller,
                  const v1::ListNamespacesRequest& request, v1::ListNamespacesResponse& response) {
  size_t size = 0;
  if (grpc::Status status = PageSize(request.page_size(), &size); !status.ok()) return status;
  std::vector<std::string> place;
  if (grpc::Status status = ReadPageToken(request.page_token(), kQuery, 1, &place); !status.ok()) {
    return status;
  }
  for (v1::Namespace& name_space : reads.Namespaces()) {
    if (!place.empty() && name_space.name() <= place[0]) continue;
    if (!caller.Sees(name_space.name())) continue;
    if (static_cast<size_t>(response.namespaces_size()) == size) {
      response.set_next_page_token(MakePageToken(kQuery, {response.namespaces().rbegin()->name()}));
      break;
    }
    *response.add_namespaces() = std::move(name_space);
  }
  return grpc::Status::OK;
}

}  // namespace

grpc::ServerUnaryReactor* ListNamespaces(const Shell& shell, const Caller& caller, Context* context,
                                         const v1::ListNamespacesRequest& request,
                                         v1::ListNamespacesResponse& response) {
  return Done(context, List(shell.reads, caller, request, response));
}

}  // namespace mega::service
