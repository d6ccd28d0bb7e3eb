// WorkerService.PushSteps: the end of the stream is answered when all its reports are in the
// history, so an answer is a receipt.
#include <algorithm>
#include <optional>

#include "coordinator/service/access.h"
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
  PushStepsReactor(const Shell& shell, const Context& context)
      : ReadStream(this), shell_(shell), caller_(CallerOf(context)) {
    ReadNext();
  }

 private:
  void OnMessage() override {
    message_.DiscardUnknownFields();
    if (const size_t bytes = message_.ByteSizeLong(); bytes > kMostReportBytes) {
      return End(RpcError(absl::StatusCode::kInvalidArgument, "REPORT_TOO_LARGE",
                          fmt::format("a step report has {} bytes and may have {}; it comes from "
                                      "no worker of this release",
                                      bytes, kMostReportBytes)));
    }
    if (!IsOfCaller()) {
      return End(RpcError(absl::StatusCode::kPermissionDenied, "RANK_OF_ANOTHER_NODE",
                          fmt::format("rank {} of job '{}' does not run on {}", message_.rank(),
                                      message_.job_uid(), tls::Describe(*caller_))));
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

  // A report says nothing of its node, so the attempt does. An attempt is known here before its
  // ranks are ordered to start, so nobody reports of a later one; what is said about one that is
  // known no longer changes nothing.
  bool IsOfCaller() const {
    if (!caller_) return true;
    const auto job = shell_.reads.JobRecord(message_.job_uid());
    if (job == nullptr) return true;
    const auto attempt =
        std::ranges::find(job->attempts(), message_.attempt(), &v1::Attempt::number);
    if (attempt == job->attempts().end()) {
      return !job->attempts().empty() && message_.attempt() < job->attempts(0).number();
    }
    return message_.rank() >= 0 && message_.rank() < attempt->ranks_size() &&
           attempt->ranks(static_cast<int>(message_.rank())).node() == caller_->name;
  }

  const Shell shell_;
  const std::optional<tls::PeerName> caller_;
};

}  // namespace

grpc::ServerReadReactor<v1::StepReport>* PushSteps(const Shell& shell, Context* context,
                                                   v1::PushStepsResponse&) {
  return new PushStepsReactor(shell, *context);
}

}  // namespace mega::service
