// JobService.WatchEvents: by revision, gap-free, resumable. After the event that ended the job, the
// stream ends.
#include "coordinator/service/job_names.h"
#include "coordinator/service/pull_stream.h"
#include "coordinator/service/rpc/rpcs.h"
#include "coordinator/service/rpc_status.h"

namespace mega::service {
namespace {

class EventStream final : public PullStream<v1::JobEvent> {
 public:
  EventStream(const Shell& shell, core::JobUid uid, int64_t from_revision, bool follow)
      : reads_(shell.reads), uid_(std::move(uid)), revision_(from_revision), follow_(follow) {
    Open(shell.reads, uid_);
  }

 private:
  Next Pull(v1::JobEvent& out, grpc::Status& end) override {
    // The phase first: events of the end are published together with it.
    const bool ended = core::IsTerminal(reads_.JobRecord(uid_)->phase());
    if (const auto event = reads_.EventAfter(uid_, revision_)) {
      out = *event;
      revision_ = event->revision();
      return Next::kWrite;
    }
    if (follow_ && !ended) return Next::kWait;
    end = grpc::Status::OK;
    return Next::kEnd;
  }

  const ReadModel& reads_;
  const core::JobUid uid_;
  int64_t revision_;
  const bool follow_;
};

}  // namespace

grpc::ServerWriteReactor<v1::JobEvent>* WatchEvents(const Shell& shell,
                                                    const v1::WatchEventsRequest& request) {
  std::shared_ptr<const v1::Job> job;
  if (grpc::Status status = FindJob(shell.reads, request.name(), &job); !status.ok()) {
    return new FailedStream<v1::JobEvent>(std::move(status));
  }
  const int64_t oldest = shell.reads.OldestKeptEvent(job->uid());
  if (request.from_revision() > 0 && request.from_revision() < oldest) {
    return new FailedStream<v1::JobEvent>(RpcError(
        absl::StatusCode::kOutOfRange, "REVISION_COMPACTED",
        fmt::format("events of '{}' before revision {} are gone; start again from revision 0",
                    job->uid(), oldest)));
  }
  return new EventStream(shell, job->uid(), request.from_revision(), request.follow());
}

}  // namespace mega::service
