#include "worker/daemon/log_refusals.h"

#include <grpcpp/grpcpp.h>

#include "mega/v1/worker.grpc.pb.h"
#include "worker/daemon/channel.h"

namespace mega::daemon {
namespace {

constexpr size_t kMostWaiting = 4096;
constexpr std::chrono::seconds kDeadline{10};

}  // namespace

LogRefusals::LogRefusals(Coordinator coordinator)
    : coordinator_(std::move(coordinator)), thread_([this](std::stop_token stop) { Run(stop); }) {}

LogRefusals::~LogRefusals() {
  {
    MutexLock lock(mu_);
    leaving_ = true;
    if (sending_ != nullptr) sending_->TryCancel();
    changed_.NotifyAll();
  }
  thread_.join();
}

void LogRefusals::Tell(const v1::StreamLog& request, std::string why) {
  v1::LogChunk chunk;
  chunk.set_stream_id(request.stream_id());
  chunk.set_job_uid(request.job_uid());
  chunk.set_attempt(request.attempt());
  chunk.set_rank(request.rank());
  chunk.set_error(std::move(why));
  MutexLock lock(mu_);
  if (waiting_.size() >= kMostWaiting) waiting_.pop_front();
  waiting_.push_back(std::move(chunk));
  changed_.NotifyAll();
}

void LogRefusals::Run(std::stop_token) {
  while (true) {
    std::deque<v1::LogChunk> chunks;
    {
      MutexLock lock(mu_);
      while (waiting_.empty() && !leaving_) changed_.WaitFor(mu_, std::chrono::seconds(1));
      if (leaving_) return;
      chunks.swap(waiting_);
    }
    Send(chunks);
  }
}

void LogRefusals::Send(const std::deque<v1::LogChunk>& chunks) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kDeadline);
  {
    MutexLock lock(mu_);
    if (leaving_) return;
    sending_ = &context;
  }
  const auto stub = v1::WorkerService::NewStub(MakeChannel(coordinator_));
  v1::PushLogsResponse response;
  const auto writer = stub->PushLogs(&context, &response);
  for (const v1::LogChunk& chunk : chunks) {
    if (!writer->Write(chunk)) break;  // its readers ask again when it is back
  }
  writer->WritesDone();
  (void)writer->Finish();
  MutexLock lock(mu_);
  sending_ = nullptr;
}

}  // namespace mega::daemon
