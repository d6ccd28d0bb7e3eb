// JobService.WatchEvents: by revision, gap-free, resumable. After the event that ended the job, the
// stream ends. A reader that the deletion of old events overtakes is told so.
#include "coordinator/service/failed_call.h"
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
    const auto job = reads_.JobRecord(uid_);
    if (job == nullptr) {
      end = JobGone(uid_);
      return Next::kEnd;
    }
    const bool ended = core::IsTerminal(job->phase());
    const auto [event, gone] = reads_.EventAfter(uid_, revision_);
    // Revision 0 asks for what there is; every other reader has seen one and must see the next.
    if (revision_ > 0 && revision_ < gone) {
      end = RpcError(absl::StatusCode::kOutOfRange, "REVISION_COMPACTED",
                     fmt::format("events of '{}' up to revision {} are gone; start again from "
                                 "revision 0",
                                 uid_, gone));
      return Next::kEnd;
    }
    if (event != nullptr) {
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

grpc::ServerWriteReactor<v1::JobEvent>* WatchEvents(const Shell& shell, const Caller& caller,
                                                    const v1::WatchEventsRequest& request) {
  std::shared_ptr<const v1::Job> job;
  if (grpc::Status status = FindJob(shell.reads, caller, request.name(), &job); !status.ok()) {
    return new FailedStream<v1::JobEvent>(std::move(status));
  }
  return new EventStream(shell, job->uid(), request.from_revision(), request.follow());
}

}  // namespace mega::service
