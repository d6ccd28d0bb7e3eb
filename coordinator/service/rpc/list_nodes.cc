#include "coordinator/service/page_token.h"
#include "coordinator/service/rpc/rpcs.h"
#include "coordinator/service/unary.h"

namespace mega::service {
namespace {

constexpr char kQuery[] = "nodes";

grpc::Status List(const ReadModel& reads, const v1::ListNodesRequest& request,
                  v1::ListNodesResponse& response) {
  size_t size = 0;
  if (grpc::Status status = PageSize(request.page_size(), &size); !status.ok()) return status;
  std::vector<std::string> place;
  if (grpc::Status status = ReadPageToken(request.page_token(), kQuery, 1, &place); !status.ok()) {
    return status;
  }
  std::vector<v1::Node> nodes = reads.ListNodes(place.empty() ? "" : place[0], size + 1);
  size_t bytes = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    bytes += nodes[i].ByteSizeLong();
    if (i == size || (i > 0 && bytes > kMostPageBytes)) {
      response.set_next_page_token(MakePageToken(kQuery, {response.nodes().rbegin()->name()}));
      break;
    }
    *response.add_nodes() = std::move(nodes[i]);
  }
  return grpc::Status::OK;
}

}  // namespace

grpc::ServerUnaryReactor* ListNodes(const Shell& shell, Context* context,
                                    const v1::ListNodesRequest& request,
                                    v1::ListNodesResponse& response) {
  return Done(context, List(shell.reads, request, response));
}

}  // namespace mega::service
