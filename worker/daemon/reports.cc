#include "worker/daemon/reports.h"

#include <grpcpp/grpcpp.h>

#include "base/log.h"
#include "mega/v1/worker.grpc.pb.h"
#include "worker/daemon/channel.h"

namespace mega::daemon {
namespace {
// A receipt at least this often: what may have to be sent again after an outage.
constexpr auto kStreamTime = std::chrono::seconds(5);
constexpr int kStreamReports = 5'000;
}  // namespace

Reports::Reports(Coordinator coordinator, size_t capacity)
    : coordinator_(std::move(coordinator)),
      buffer_(capacity),
      thread_([this](std::stop_token stop) { Run(stop); }) {}

Reports::~Reports() {
  thread_.request_stop();
  MutexLock lock(mu_);
  if (context_ != nullptr) context_->TryCancel();
  changed_.NotifyAll();
}

void Reports::Add(const RankKey& key, v1::StepReport report) {
  MutexLock lock(mu_);
  buffer_.Add(key, std::move(report));
  changed_.NotifyAll();
}

void Reports::Flush() {
  MutexLock lock(mu_);
  flush_ = true;
  changed_.NotifyAll();
}

void Reports::Wake() {
  MutexLock lock(mu_);
  wake_ = true;
  changed_.NotifyAll();
}

int64_t Reports::Pending(const RankKey& key) const {
  MutexLock lock(mu_);
  return buffer_.Pending(key);
}

int64_t Reports::dropped() const {
  MutexLock lock(mu_);
  return buffer_.dropped();
}

bool Reports::SendOnce(std::stop_token stop, std::shared_ptr<grpc::Channel>& channel) {
  // A new channel after a failure: a failed one would keep gRPC's back-off besides ours.
  if (!channel) channel = MakeChannel(coordinator_);
  const auto stub = v1::WorkerService::NewStub(channel);
  grpc::ClientContext context;
  v1::PushStepsResponse response;
  const auto end_at = std::chrono::steady_clock::now() + kStreamTime;
  context.set_deadline(std::chrono::system_clock::now() + 4 * kStreamTime);
  {
    MutexLock lock(mu_);
    context_ = &context;
  }
  const auto writer = stub->PushSteps(&context, &response);
  int written = 0;
  bool broken = false;
  while (!broken && !stop.stop_requested()) {
    v1::StepReport report;
    {
      MutexLock lock(mu_);
      while (!buffer_.HasUnsent() && !flush_ && !stop.stop_requested() &&
             changed_.WaitUntil(mu_, end_at)) {
      }
      const bool over = written >= kStreamReports || std::chrono::steady_clock::now() >= end_at;
      const v1::StepReport* next = over ? nullptr : buffer_.TakeUnsent();
      if (next == nullptr) {
        flush_ = false;
        break;
      }
      report = *next;
    }
    broken = !writer->Write(report);
    ++written;
  }
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  MutexLock lock(mu_);
  context_ = nullptr;
  if (status.ok() && !broken) {
    buffer_.Confirm(buffer_.sent());
    return true;
  }
  buffer_.Rewind();
  channel.reset();
  if (!stop.stop_requested()) {
    log::Debug("step reports wait for the coordinator",
               {{"reports", buffer_.size()}, {"error", status.error_message()}});
  }
  return false;
}

void Reports::Run(std::stop_token stop) {
  Backoff backoff;
  std::shared_ptr<grpc::Channel> channel;
  while (!stop.stop_requested()) {
    {
      MutexLock lock(mu_);
      while (!buffer_.HasUnsent() && !stop.stop_requested()) {
        flush_ = false;  // nothing without a receipt
        changed_.WaitFor(mu_, std::chrono::seconds(1));
      }
    }
    if (stop.stop_requested()) return;
    if (SendOnce(stop, channel)) {
      backoff.Reset();
      continue;
    }
    const auto until = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(backoff.Next());
    MutexLock lock(mu_);
    while (!wake_ && !stop.stop_requested() && changed_.WaitUntil(mu_, until)) {
    }
    if (wake_) backoff.Reset();
    wake_ = false;
  }
}

}  // namespace mega::daemon
