// WorkerService.PushLogs: each chunk goes to the reader who asked for it; while that one's buffer
// is full, nothing more is read here.
#include <set>
#include <string>

#include "coordinator/service/read_stream.h"
#include "coordinator/service/rpc/rpcs.h"
#include "coordinator/service/rpc_status.h"
#include "fmt/core.h"

namespace mega::service {
namespace {

constexpr size_t kMostStreams = 4096;
// Four times what a worker sends at once (telemetry.proto).
constexpr size_t kMostChunkBytes = 1 << 20;

class PushLogsReactor final
    : public ReadStream<PushLogsReactor, grpc::ServerReadReactor<v1::LogChunk>, v1::LogChunk> {
 public:
  explicit PushLogsReactor(const Shell& shell) : ReadStream(this), shell_(shell) { ReadNext(); }

 private:
  void OnMessage() override {
    message_.DiscardUnknownFields();
    if (const size_t bytes = message_.ByteSizeLong(); bytes > kMostChunkBytes) {
      return End(RpcError(absl::StatusCode::kInvalidArgument, "LOG_CHUNK_TOO_LARGE",
                          fmt::format("a piece of a log has {} bytes and may have {}; send it in "
                                      "several",
                                      bytes, kMostChunkBytes)));
    }
    Deliver();
  }
  void OnEndOfReads() override { End(grpc::Status::OK); }
  void Closed() override {
    for (const std::string& id : open_) shell_.logs.Broken(id);
  }

  void Deliver() {
    if (open_.size() < kMostStreams) open_.insert(message_.stream_id());
    const auto delivery = shell_.logs.Deliver(message_, [handle = handle_] {
      handle->With([](PushLogsReactor& reactor) { reactor.Deliver(); });
    });
    if (delivery == LogRouter::Delivery::kWait) return;
    if (delivery == LogRouter::Delivery::kUnknown || message_.end()) {
      open_.erase(message_.stream_id());
    }
    if (delivery == LogRouter::Delivery::kUnknown) {
      return End(RpcError(absl::StatusCode::kNotFound, "LOG_STREAM_CLOSED",
                          "nobody reads this log stream any more"));
    }
    ReadNext();
  }

  const Shell shell_;
  std::set<std::string> open_;  // streams seen here whose end was not
};

}  // namespace

grpc::ServerReadReactor<v1::LogChunk>* PushLogs(const Shell& shell, v1::PushLogsResponse&) {
  return new PushLogsReactor(shell);
}

}  // namespace mega::service
