// JobService.ListQueue: who is next, first first. Positions count over all namespaces. Forecasting
// starts takes a while when many wait, so it runs on a thread of its own.
#include "absl/strings/numbers.h"
#include "coordinator/service/page_token.h"
#include "coordinator/service/queue_view.h"
#include "coordinator/service/rpc/rpcs.h"
#include "coordinator/service/unary.h"

namespace mega::service {
namespace {

grpc::Status List(const Shell& shell, const Caller& caller, const v1::ListQueueRequest& request,
                  v1::ListQueueResponse& response) {
  std::string name_space;
  if (grpc::Status status = ReadParent(request.parent(), &name_space); !status.ok()) return status;
  if (!name_space.empty()) {
    if (grpc::Status status = caller.CheckIn(name_space); !status.ok()) return status;
  }
  const std::string query = "queue of " + name_space;
  size_t size = 0;
  if (grpc::Status status = PageSize(request.page_size(), &size); !status.ok()) return status;
  std::vector<std::string> place;
  if (grpc::Status status = ReadPageToken(request.page_token(), query, 1, &place); !status.ok()) {
    return status;
  }
  int64_t after = 0;
  if (!place.empty() && !absl::SimpleAtoi(place[0], &after)) {
    return FieldInvalid("PAGE_TOKEN_INVALID", "page_token", "page_token is none of ours");
  }
  size_t bytes = 0;
  VisitQueue(TakePresent(shell.reads, shell.clock.WallNow()), [&](v1::QueueEntry entry) {
    const std::string& of = entry.metadata().namespace_();
    const bool is_asked = (name_space.empty() || of == name_space) && caller.Sees(of);
    if (entry.position() <= after || !is_asked) return true;
    bytes += entry.ByteSizeLong();
    const auto count = static_cast<size_t>(response.entries_size());
    if (count == size || (count > 0 && bytes > kMostPageBytes)) {
      response.set_next_page_token(
          MakePageToken(query, {std::to_string(response.entries().rbegin()->position())}));
      return false;
    }
    *response.add_entries() = std::move(entry);
    return true;
  });
  return grpc::Status::OK;
}

}  // namespace

grpc::ServerUnaryReactor* ListQueue(const Shell& shell, const Caller& caller, Context* context,
                                    const v1::ListQueueRequest& request,
                                    v1::ListQueueResponse& response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (!shell.forecasts.Post([shell, caller, &request, &response, reactor] {
        reactor->Finish(List(shell, caller, request, response));
      })) {
    reactor->Finish(TooManyChecks());
  }
  return reactor;
}

}  // namespace mega::service
