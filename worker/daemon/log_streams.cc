#include "worker/daemon/log_streams.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>

#include "base/log.h"
#include "base/thread.h"
#include "mega/v1/worker.grpc.pb.h"
#include "worker/daemon/channel.h"

namespace mega::daemon {
namespace {
constexpr int64_t kChunkBytes = 256 << 10;
constexpr absl::Duration kPoll = absl::Milliseconds(250);  // how soon a stop is seen
}  // namespace

LogStreams::~LogStreams() {
  std::list<Stream> streams;
  {
    MutexLock lock(mu_);
    streams.swap(streams_);
  }
  for (Stream& stream : streams) {
    stream.thread.request_stop();
    stream.context.TryCancel();
  }
  streams.clear();  // joins
}

void LogStreams::JoinEnded() {
  for (const std::string& id : ended_) {
    streams_.remove_if([&](const Stream& stream) { return stream.id == id; });
  }
  ended_.clear();
}

void LogStreams::Handle(const v1::StreamLog& request,
                        absl::StatusOr<std::shared_ptr<RankLog>> log) {
  MutexLock lock(mu_);
  JoinEnded();
  const auto same = std::find_if(streams_.begin(), streams_.end(), [&](const Stream& stream) {
    return stream.id == request.stream_id();
  });
  if (request.cancel()) {
    if (same == streams_.end()) return;
    same->thread.request_stop();
    same->context.TryCancel();
    return;
  }
  if (same != streams_.end()) return;  // asked twice
  if (streams_.size() >= kMaxStreams) {
    log::Warn("too many log streams; refused", {{"stream", request.stream_id()}});
    refusals_.Tell(request, fmt::format("too many log streams ({}) on this node; ask for fewer "
                                        "ranks, or end other readers",
                                        kMaxStreams));
    return;
  }
  Stream& stream = streams_.emplace_back();
  stream.id = request.stream_id();
  absl::StatusOr<std::jthread> thread =
      StartThread([this, request, log, &stream](std::stop_token stop) {
        Run(stop, request, log, stream.context);
        MutexLock lock(mu_);
        ended_.push_back(request.stream_id());
      });
  if (thread.ok()) {
    stream.thread = *std::move(thread);
    return;
  }
  streams_.pop_back();
  const std::string why(thread.status().message());
  log::Warn("a log stream was refused", {{"stream", request.stream_id()}, {"why", why}});
  refusals_.Tell(request, fmt::format("this node cannot send the log now: {}", why));
}

void LogStreams::Run(std::stop_token stop, const v1::StreamLog& request,
                     const absl::StatusOr<std::shared_ptr<RankLog>>& opened,
                     grpc::ClientContext& context) {
  const auto channel = MakeChannel(coordinator_);
  const auto stub = v1::WorkerService::NewStub(channel);
  v1::PushLogsResponse response;
  const auto writer = stub->PushLogs(&context, &response);

  v1::LogChunk chunk;
  chunk.set_stream_id(request.stream_id());
  chunk.set_job_uid(request.job_uid());
  chunk.set_attempt(request.attempt());
  chunk.set_rank(request.rank());

  RankLog* const log = opened.ok() ? opened->get() : nullptr;
  absl::Status failed = absl::IsNotFound(opened.status()) ? absl::OkStatus() : opened.status();
  int64_t offset = std::max<int64_t>(0, request.offset());
  if (log != nullptr && request.tail_bytes() > 0) {
    offset = std::max(offset, log->end_offset() - request.tail_bytes());
  }
  bool end = absl::IsNotFound(opened.status());
  while (log != nullptr && !end && !stop.stop_requested()) {
    const auto read =
        log->ReadAt(offset, kChunkBytes, request.follow() ? kPoll : absl::ZeroDuration());
    if (!read.ok()) {
      failed = read.status();
      break;
    }
    end = read->end || (read->data.empty() && !request.follow());
    if (read->data.empty()) continue;
    chunk.set_offset(read->offset);
    chunk.set_data(read->data);
    if (!writer->Write(chunk)) break;
    offset = read->offset + static_cast<int64_t>(read->data.size());
  }
  if (!failed.ok()) {
    log::Warn("a log stream ends early", {{"error", std::string(failed.message())}});
    chunk.set_error(std::string(failed.message()));
  }
  if (end || !failed.ok()) {
    chunk.set_offset(offset);
    chunk.clear_data();
    chunk.set_end(end);
    writer->Write(chunk);
  }
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  if (!status.ok() && status.error_code() != grpc::StatusCode::CANCELLED) {
    log::Debug("a log stream broke",
               {{"stream", request.stream_id()}, {"error", status.error_message()}});
  }
}

}  // namespace mega::daemon
