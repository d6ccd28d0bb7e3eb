// JobService.StreamSteps: rank 0's reports out of the history, then as they come; each step once,
// though a recovery does some again. The history is read on a thread of its own, and only when
// steps were added since the last time.
#include <deque>

#include "coordinator/service/failed_call.h"
#include "coordinator/service/job_names.h"
#include "coordinator/service/pull_stream.h"
#include "coordinator/service/rpc/rpcs.h"
#include "coordinator/service/rpc_status.h"
#include "coordinator/service/stream_handle.h"

namespace mega::service {
namespace {

constexpr int64_t kStepsPerRead = 256;
// Reports travel apart from exits: the last may come after the job has ended.
constexpr absl::Duration kLinger = absl::Seconds(3);

class StepStream final : public PullStream<v1::StepReport> {
 public:
  using Handle = StreamHandle<StepStream>;

  StepStream(const Shell& shell, core::JobUid uid, int64_t from_step, bool follow)
      : shell_(shell),
        uid_(std::move(uid)),
        next_step_(from_step),
        follow_(follow),
        handle_(std::make_shared<Handle>(this)) {
    Open(shell.reads, uid_);
  }

 private:
  Next Pull(v1::StepReport& out, grpc::Status& end) override {
    if (!ahead_.empty()) {
      out = std::move(ahead_.front());
      ahead_.pop_front();
      next_step_ = out.step() + 1;
      return Next::kWrite;
    }
    if (!failed_.ok()) {
      end = RpcError(failed_);
      return Next::kEnd;
    }
    if (reading_) return Next::kWait;
    const auto job = shell_.reads.JobRecord(uid_);  // before the history: see Ended
    if (job == nullptr) {
      end = JobGone(uid_);
      return Next::kEnd;
    }
    const int64_t published = shell_.reads.StepsPublished(uid_);
    if (may_be_more_ || published != published_) {
      published_ = published;
      if (Read()) return Next::kWait;
      end = Overloaded("too many streams wait for the step history", absl::Seconds(1));
      return Next::kEnd;
    }
    if (follow_ && !Ended(*job)) return Next::kWait;
    end = grpc::Status::OK;
    return Next::kEnd;
  }

  bool Read() {
    reading_ = true;
    return shell_.history.Post(
        [&store = shell_.store, handle = handle_, uid = uid_, from = next_step_] {
          auto steps = store.ReadSteps(uid, from, kStepsPerRead);
          handle->With([&](StepStream& stream) { stream.Take(std::move(steps)); });
        });
  }
  void Take(absl::StatusOr<std::vector<v1::StepReport>> steps) {
    Update([&] {
      reading_ = false;
      failed_ = steps.status();
      if (!steps.ok()) return;
      may_be_more_ = std::ssize(*steps) == kStepsPerRead;
      ahead_.assign(std::make_move_iterator(steps->begin()), std::make_move_iterator(steps->end()));
    });
  }

  void Closed() override { handle_->Detach(); }

  bool Ended(const v1::Job& job) {
    if (!core::IsTerminal(job.phase())) return false;
    const int64_t last = job.attempts().empty() ? 0 : core::NewestAttempt(job).plan().steps();
    if (job.phase() != v1::JOB_PHASE_SUCCEEDED || next_step_ > last) return true;
    if (ended_at_ == absl::InfiniteDuration()) ended_at_ = shell_.clock.BootNow();
    return shell_.clock.BootNow() - ended_at_ > kLinger;
  }

  const Shell shell_;
  const core::JobUid uid_;
  int64_t next_step_;
  const bool follow_;
  const std::shared_ptr<Handle> handle_;
  std::deque<v1::StepReport> ahead_;
  bool reading_ = false;     // and the answer will come with Take
  bool may_be_more_ = true;  // at the last read
  int64_t published_ = 0;    // StepsPublished before it
  absl::Status failed_;
  absl::Duration ended_at_ = absl::InfiniteDuration();
};

}  // namespace

grpc::ServerWriteReactor<v1::StepReport>* StreamSteps(const Shell& shell, const Caller& caller,
                                                      const v1::StreamStepsRequest& request) {
  std::shared_ptr<const v1::Job> job;
  if (grpc::Status status = FindJob(shell.reads, caller, request.name(), &job); !status.ok()) {
    return new FailedStream<v1::StepReport>(std::move(status));
  }
  return new StepStream(shell, job->uid(), request.from_step(), request.follow());
}

}  // namespace mega::service
