// WorkerService.PushLogs: each chunk goes to the reader who asked for it; while that one's buffer
// is full, nothing more is read here.
#include <set>
#include <utility>

#include "coordinator/service/rpc/rpcs.h"
#include "coordinator/service/rpc_status.h"
#include "coordinator/service/stream_handle.h"

namespace mega::service {
namespace {

constexpr size_t kMostStreams = 4096;

class PushLogsReactor final : public grpc::ServerReadReactor<v1::LogChunk> {
 public:
  using Handle = StreamHandle<PushLogsReactor>;

  explicit PushLogsReactor(const Shell& shell)
      : shell_(shell), handle_(std::make_shared<Handle>(this)) {
    StartRead(&chunk_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return End(grpc::Status::OK);
    Deliver();
  }
  void OnCancel() override { End(grpc::Status(grpc::StatusCode::CANCELLED, "")); }
  void OnDone() override {
    handle_->Detach();
    for (const std::string& id : open_) shell_.logs.Broken(id);
    delete this;
  }

 private:
  void Deliver() {
    if (open_.size() < kMostStreams) open_.insert(chunk_.stream_id());
    const auto delivery = shell_.logs.Deliver(chunk_, [handle = handle_] {
      handle->With([](PushLogsReactor& reactor) { reactor.Deliver(); });
    });
    if (delivery == LogRouter::Delivery::kWait) return;
    if (delivery == LogRouter::Delivery::kUnknown || chunk_.end()) open_.erase(chunk_.stream_id());
    if (delivery == LogRouter::Delivery::kUnknown) {
      return End(RpcError(absl::StatusCode::kNotFound, "LOG_STREAM_CLOSED",
                          "nobody reads this log stream any more"));
    }
    MutexLock lock(mu_);
    if (!finished_) StartRead(&chunk_);
  }
  void End(grpc::Status status) {
    MutexLock lock(mu_);
    if (!std::exchange(finished_, true)) Finish(std::move(status));
  }

  const Shell shell_;
  const std::shared_ptr<Handle> handle_;
  v1::LogChunk chunk_;
  std::set<std::string> open_;  // streams seen here whose end was not
  Mutex mu_;
  bool finished_ MEGA_GUARDED_BY(mu_) = false;
};

}  // namespace

grpc::ServerReadReactor<v1::LogChunk>* PushLogs(const Shell& shell, v1::PushLogsResponse&) {
  return new PushLogsReactor(shell);
}

}  // namespace mega::service
