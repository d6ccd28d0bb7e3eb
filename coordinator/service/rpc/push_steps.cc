// WorkerService.PushSteps: the end of the stream is answered when all its reports are in the
// history, so an answer is a receipt.
#include <utility>

#include "coordinator/service/rpc/rpcs.h"
#include "coordinator/service/stream_handle.h"

namespace mega::service {
namespace {

class PushStepsReactor final : public grpc::ServerReadReactor<v1::StepReport> {
 public:
  using Handle = StreamHandle<PushStepsReactor>;

  explicit PushStepsReactor(const Shell& shell)
      : shell_(shell), handle_(std::make_shared<Handle>(this)) {
    StartRead(&report_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      shell_.steps.AfterRecorded([handle = handle_] {
        handle->With([](PushStepsReactor& reactor) { reactor.End(grpc::Status::OK); });
      });
      return;
    }
    v1::CoreEvent event;
    *event.mutable_step_report() = std::move(report_);
    shell_.loop.Put(std::move(event), [handle = handle_] {
      handle->With([](PushStepsReactor& reactor) { reactor.ReadNext(); });
    });
  }
  void OnCancel() override { End(grpc::Status(grpc::StatusCode::CANCELLED, "")); }
  void OnDone() override {
    handle_->Detach();
    delete this;
  }

 private:
  void ReadNext() {
    MutexLock lock(mu_);
    if (!finished_) StartRead(&report_);
  }
  void End(grpc::Status status) {
    MutexLock lock(mu_);
    if (!std::exchange(finished_, true)) Finish(std::move(status));
  }

  const Shell shell_;
  const std::shared_ptr<Handle> handle_;
  v1::StepReport report_;
  Mutex mu_;
  bool finished_ MEGA_GUARDED_BY(mu_) = false;
};

}  // namespace

grpc::ServerReadReactor<v1::StepReport>* PushSteps(const Shell& shell, v1::PushStepsResponse&) {
  return new PushStepsReactor(shell);
}

}  // namespace mega::service
