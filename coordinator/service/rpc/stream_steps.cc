// JobService.StreamSteps: rank 0's reports out of the history, then as they come; each step once,
// though a recovery does some again.
#include <deque>

#include "coordinator/service/job_names.h"
#include "coordinator/service/pull_stream.h"
#include "coordinator/service/rpc/rpcs.h"
#include "coordinator/service/rpc_status.h"

namespace mega::service {
namespace {

constexpr int64_t kStepsPerRead = 256;
// Reports travel apart from exits: the last may come after the job has ended.
constexpr absl::Duration kLinger = absl::Seconds(3);

class StepStream final : public PullStream<v1::StepReport> {
 public:
  StepStream(const Shell& shell, core::JobUid uid, int64_t from_step, bool follow)
      : shell_(shell), uid_(std::move(uid)), next_step_(from_step), follow_(follow) {
    Open(shell.reads, uid_);
  }

 private:
  Next Pull(v1::StepReport& out, grpc::Status& end) override {
    const auto job = shell_.reads.JobRecord(uid_);  // before the history: see Ended
    if (ahead_.empty()) {
      auto more = shell_.store.ReadSteps(uid_, next_step_, kStepsPerRead);
      if (!more.ok()) {
        end = RpcError(more.status());
        return Next::kEnd;
      }
      ahead_.assign(std::make_move_iterator(more->begin()), std::make_move_iterator(more->end()));
    }
    if (!ahead_.empty()) {
      out = std::move(ahead_.front());
      ahead_.pop_front();
      next_step_ = out.step() + 1;
      return Next::kWrite;
    }
    if (follow_ && !Ended(*job)) return Next::kWait;
    end = grpc::Status::OK;
    return Next::kEnd;
  }

  bool Ended(const v1::Job& job) {
    if (!core::IsTerminal(job.phase())) return false;
    const int64_t last = job.attempts().empty() ? 0 : job.attempts().rbegin()->plan().steps();
    if (job.phase() != v1::JOB_PHASE_SUCCEEDED || next_step_ > last) return true;
    if (ended_at_ == absl::InfiniteDuration()) ended_at_ = shell_.clock.BootNow();
    return shell_.clock.BootNow() - ended_at_ > kLinger;
  }

  const Shell shell_;
  const core::JobUid uid_;
  int64_t next_step_;
  const bool follow_;
  std::deque<v1::StepReport> ahead_;
  absl::Duration ended_at_ = absl::InfiniteDuration();
};

}  // namespace

grpc::ServerWriteReactor<v1::StepReport>* StreamSteps(const Shell& shell,
                                                      const v1::StreamStepsRequest& request) {
  std::shared_ptr<const v1::Job> job;
  if (grpc::Status status = FindJob(shell.reads, request.name(), &job); !status.ok()) {
    return new FailedStream<v1::StepReport>(std::move(status));
  }
  return new StepStream(shell, job->uid(), request.from_step(), request.follow());
}

}  // namespace mega::service
