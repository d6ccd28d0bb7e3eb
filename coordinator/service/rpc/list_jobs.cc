// JobService.ListJobs: oldest first, so that a page's token stays right while jobs come in.
#include "absl/strings/numbers.h"
#include "base/clock.h"
#include "coordinator/service/page_token.h"
#include "coordinator/service/rpc/rpcs.h"
#include "coordinator/service/unary.h"

namespace mega::service {
namespace {

JobKey KeyOf(const v1::Job& job) {
  return {absl::ToUnixNanos(FromProto(job.create_time())), job.uid()};
}

grpc::Status List(const ReadModel& reads, const Caller& caller, const v1::ListJobsRequest& request,
                  v1::ListJobsResponse& response) {
  std::string name_space;
  if (grpc::Status status = ReadParent(request.parent(), &name_space); !status.ok()) return status;
  if (!name_space.empty()) {
    if (grpc::Status status = caller.CheckIn(name_space); !status.ok()) return status;
  }
  const std::string query = "jobs in " + name_space;
  size_t size = 0;
  if (grpc::Status status = PageSize(request.page_size(), &size); !status.ok()) return status;
  std::vector<std::string> place;
  if (grpc::Status status = ReadPageToken(request.page_token(), query, 2, &place); !status.ok()) {
    return status;
  }
  JobKey after{INT64_MIN, ""};
  if (!place.empty()) {
    if (!absl::SimpleAtoi(place[0], &after.first)) {
      return FieldInvalid("PAGE_TOKEN_INVALID", "page_token", "page_token is none of ours");
    }
    after.second = place[1];
  }
  std::vector<v1::Job> jobs = reads.ListJobs(
      [&](const std::string& of) {
        return (name_space.empty() || of == name_space) && caller.Sees(of);
      },
      after, size + 1);
  size_t bytes = 0;
  for (size_t i = 0; i < jobs.size(); ++i) {
    bytes += jobs[i].ByteSizeLong();
    if (i == size || (i > 0 && bytes > kMostPageBytes)) {
      const JobKey last = KeyOf(*response.jobs().rbegin());
      response.set_next_page_token(MakePageToken(query, {std::to_string(last.first), last.second}));
      break;
    }
    *response.add_jobs() = std::move(jobs[i]);
  }
  return grpc::Status::OK;
}

}  // namespace

grpc::ServerUnaryReactor* ListJobs(const Shell& shell, const Caller& caller, Context* context,
                                   const v1::ListJobsRequest& request,
                                   v1::ListJobsResponse& response) {
  return Done(context, List(shell.reads, caller, request, response));
}

}  // namespace mega::service
