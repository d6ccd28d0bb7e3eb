// WorkerService.PushSteps: the end of the stream is answered when all its reports are in the
// history, so an answer is a receipt.
#include "coordinator/service/read_stream.h"
#include "coordinator/service/rpc/rpcs.h"
#include "coordinator/service/rpc_status.h"
#include "fmt/core.h"

namespace mega::service {
namespace {

// Numbers and one uid; far above what a report of any release has.
constexpr size_t kMostReportBytes = 4 << 10;

class PushStepsReactor final
    : public ReadStream<PushStepsReactor, grpc::ServerReadReactor<v1::StepReport>, v1::StepReport> {
 public:
  explicit PushStepsReactor(const Shell& shell) : ReadStream(this), shell_(shell) { ReadNext(); }

 private:
  void OnMessage() override {
    message_.DiscardUnknownFields();
    if (const size_t bytes = message_.ByteSizeLong(); bytes > kMostReportBytes) {
      return End(RpcError(absl::StatusCode::kInvalidArgument, "REPORT_TOO_LARGE",
                          fmt::format("a step report has {} bytes and may have {}; it comes from "
                                      "no worker of this release",
                                      bytes, kMostReportBytes)));
    }
    v1::CoreEvent event;
    *event.mutable_step_report() = std::move(message_);
    shell_.loop.Put(std::move(event), [handle = handle_] {
      handle->With([](PushStepsReactor& reactor) { reactor.ReadNext(); });
    });
  }
  void OnEndOfReads() override {
    shell_.steps.AfterRecorded([handle = handle_] {
      handle->With([](PushStepsReactor& reactor) { reactor.End(grpc::Status::OK); });
    });
  }

  const Shell shell_;
};

}  // namespace

grpc::ServerReadReactor<v1::StepReport>* PushSteps(const Shell& shell, v1::PushStepsResponse&) {
  return new PushStepsReactor(shell);
}

}  // namespace mega::service
