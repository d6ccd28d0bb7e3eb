// Two threads: one attaches, reads and re-attaches; one watches the lease. A third exists while a
// stream is up and writes the outbox. Everything meets in mu_.
#include "worker/engine/main/trainer_link.h"

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/proc_stat.h"
#include "base/version.h"
#include "kernels/device/device.h"
#include "worker/engine/main/exit_codes.h"

namespace mega::engine {
namespace {

constexpr size_t kMaxWaitingReports = 10'000;
constexpr size_t kMaxRejected = 16;
constexpr auto kDrainTime = std::chrono::seconds(2);

}  // namespace

TrainerLink::TrainerLink(Options options, const Clock& clock)
    : options_(std::move(options)), clock_(clock) {
  next_socket_ = options_.socket;
  lease_thread_ = std::jthread([this] { WatchLease(); });
  stream_thread_ = std::jthread([this] { Run(); });
}

TrainerLink::~TrainerLink() {
  std::shared_ptr<grpc::ClientContext> stuck;
  {
    MutexLock lock(mu_);
    const auto deadline = std::chrono::steady_clock::now() + kDrainTime;
    closing_ = true;  // the writer says what is left, then half-closes; the worker ends the stream
    changed_.NotifyAll();
    while (attached_ && std::chrono::steady_clock::now() < deadline) {
      changed_.WaitUntil(mu_, deadline);
    }
    stuck = context_;
  }
  // A cancelled stream may lose words still in the transport, so only after the time is over.
  if (stuck) stuck->TryCancel();
  stream_thread_.join();
  {
    MutexLock lock(mu_);
    left_ = true;
    changed_.NotifyAll();
  }
  lease_thread_.join();
}

void TrainerLink::Send(v1::EngineMessage message) {
  MutexLock lock(mu_);
  if (message.has_step() && outbox_.size() >= kMaxWaitingReports) {
    const auto oldest = std::find_if(outbox_.begin(), outbox_.end(),
                                     [](const v1::EngineMessage& m) { return m.has_step(); });
    if (oldest != outbox_.end()) outbox_.erase(oldest);
  }
  outbox_.push_back(std::move(message));
  changed_.NotifyAll();
}

void TrainerLink::Run() {
  bool readopted = false;
  while (true) {
    const bool was_attached = AttachOnce(readopted);
    int64_t until = 0;
    {
      MutexLock lock(mu_);
      if (closing_) return;
      until = handover_until_ns_;
    }
    if (absl::ToInt64Nanoseconds(clock_.BootNow()) >= until) {
      log::Error("the worker is gone; leaving", {{"attached_before", was_attached || readopted}});
      _exit(kExitWorkerGone);
    }
    readopted = true;
    MutexLock lock(mu_);
    if (!closing_) changed_.WaitFor(mu_, std::chrono::milliseconds(100));
  }
}

bool TrainerLink::AttachOnce(bool readopted) {
  std::string socket;
  auto context = std::make_shared<grpc::ClientContext>();
  {
    MutexLock lock(mu_);
    if (closing_) return false;
    socket = next_socket_;
    context_ = context;
  }
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);  // plans and manifests of a trusted parent
  // Each attachment is a connection of its own: a cached subchannel would keep its back-off.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  auto channel =
      grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments);
  auto stub = v1::TrainerService::NewStub(channel);
  auto stream = stub->Attach(context.get());

  v1::EngineMessage hello;
  v1::Attached& attached = *hello.mutable_attached();
  *attached.mutable_rank() = options_.rank;
  attached.set_pid(getpid());
  attached.set_start_time_ticks(StartTimeTicks(getpid()));
  attached.set_readopted(readopted);
  attached.add_numeric_libraries(kernels::NumericLibraries());
  attached.set_version(kVersion);
  if (!stream->Write(hello)) {
    stream->Finish();
    return false;
  }

  bool ended = false;  // guarded by mu_
  {
    MutexLock lock(mu_);
    attached_ = true;
  }
  std::jthread writer([&] {
    while (true) {
      v1::EngineMessage message;
      {
        MutexLock lock(mu_);
        while (outbox_.empty() && !ended && !closing_) {
          changed_.WaitFor(mu_, std::chrono::seconds(1));
        }
        if (ended) return;
        if (outbox_.empty()) break;  // closing, all said
        message = std::move(outbox_.front());
        outbox_.pop_front();
      }
      const bool written = stream->Write(message);
      MutexLock lock(mu_);
      if (!written) {
        outbox_.push_front(std::move(message));
        return;
      }
      changed_.NotifyAll();
    }
    stream->WritesDone();
  });
  v1::TrainerMessage message;
  while (stream->Read(&message)) Handle(std::move(message));
  {
    MutexLock lock(mu_);
    ended = true;
    attached_ = false;
    changed_.NotifyAll();
  }
  // The worker has ended the call, and this changes nothing; or it sent what cannot be parsed and
  // keeps the call open, and Finish would wait for it for ever.
  context->TryCancel();
  writer.join();
  const bool is_ours = stream->Finish().error_code() == grpc::StatusCode::CANCELLED;
  MutexLock lock(mu_);
  if (is_ours && !closing_) {
    log::Error("the stream of the worker broke off; a message that cannot be parsed does that");
  }
  return true;
}

void TrainerLink::Handle(v1::TrainerMessage message) {
  MutexLock lock(mu_);
  switch (message.kind_case()) {
    case v1::TrainerMessage::kStart:
      lease_end_ns_ = std::max(lease_end_ns_, message.start().lease_end().boottime_ns());
      start_ = std::move(*message.mutable_start());
      break;
    case v1::TrainerMessage::kConnect:
      connect_ = std::move(*message.mutable_connect());
      break;
    case v1::TrainerMessage::kLeaseEnd:
      lease_end_ns_ = std::max(lease_end_ns_, message.lease_end().boottime_ns());
      break;
    case v1::TrainerMessage::kCheckpointCommitted:
      committed_step_ = std::max(committed_step_, message.checkpoint_committed().manifest().step());
      committed_.push_back(std::move(*message.mutable_checkpoint_committed()->mutable_manifest()));
      break;
    case v1::TrainerMessage::kCheckpointRejected: {
      const v1::CheckpointRejected& rejected = message.checkpoint_rejected();
      log::Warn("the coordinator rejected a checkpoint",
                {{"step", rejected.step()}, {"why", rejected.reason()}});
      rejected_[rejected.step()] = rejected.reason();
      if (rejected_.size() > kMaxRejected) rejected_.erase(rejected_.begin());
      rejected_steps_.push_back(rejected.step());
      if (rejected_steps_.size() > kMaxRejected) rejected_steps_.erase(rejected_steps_.begin());
      break;
    }
    case v1::TrainerMessage::kStop:
      stop_ = true;
      break;
    case v1::TrainerMessage::kSave:
      log::Info("asked to save", {{"cause", message.save().cause()}});
      save_ = true;
      break;
    case v1::TrainerMessage::kHandover:
      handover_until_ns_ = message.handover().until_boottime_ns();
      if (!message.handover().next_socket().empty()) {
        next_socket_ = message.handover().next_socket();
      }
      break;
    case v1::TrainerMessage::KIND_NOT_SET:
      break;
  }
  changed_.NotifyAll();
}

void TrainerLink::WatchLease() {
  MutexLock lock(mu_);
  while (!left_) {
    if (lease_end_ns_ > 0 && absl::ToInt64Nanoseconds(clock_.BootNow()) >= lease_end_ns_) {
      log::Error("the lease ended without a renewal; leaving");
      _exit(kExitLeaseEnded);
    }
    changed_.WaitFor(mu_, std::chrono::milliseconds(50));
  }
}

absl::StatusOr<v1::StartTraining> TrainerLink::WaitForStart(absl::Duration timeout) {
  const auto deadline = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(timeout);
  MutexLock lock(mu_);
  while (!start_) {
    if (!changed_.WaitUntil(mu_, deadline) && !start_) {
      return absl::DeadlineExceededError(
          fmt::format("no start order from the worker at {} within {}", options_.socket,
                      absl::FormatDuration(timeout)));
    }
  }
  return *start_;
}

absl::StatusOr<v1::Connect> TrainerLink::WaitForConnect(absl::Duration timeout) {
  const auto deadline = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(timeout);
  MutexLock lock(mu_);
  while (!connect_) {
    if (!changed_.WaitUntil(mu_, deadline) && !connect_) {
      return absl::DeadlineExceededError(
          fmt::format("the addresses of the other ranks did not come within {}",
                      absl::FormatDuration(timeout)));
    }
  }
  return *connect_;
}

absl::Status TrainerLink::WaitForCommit(int64_t step, absl::Duration timeout) {
  const auto deadline = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(timeout);
  MutexLock lock(mu_);
  for (bool in_time = true; committed_step_ < step;) {
    if (const auto it = rejected_.find(step); it != rejected_.end()) {
      return DataLoss("the coordinator rejected it: {}", it->second);
    }
    if (stop_) return absl::CancelledError("the worker asked the rank to stop before its commit");
    if (!in_time) {
      return absl::DeadlineExceededError(fmt::format("the coordinator did not commit it within {}",
                                                     absl::FormatDuration(timeout)));
    }
    in_time = changed_.WaitUntil(mu_, deadline);
  }
  return absl::OkStatus();
}

std::optional<v1::Manifest> TrainerLink::TakeCommitted() {
  MutexLock lock(mu_);
  if (committed_.empty()) return std::nullopt;
  v1::Manifest manifest = std::move(committed_.front());
  committed_.pop_front();
  return manifest;
}

std::vector<int64_t> TrainerLink::TakeRejected() {
  MutexLock lock(mu_);
  return std::exchange(rejected_steps_, {});
}

bool TrainerLink::StopRequested() const {
  MutexLock lock(mu_);
  return stop_;
}

void TrainerLink::RequestStop() {
  MutexLock lock(mu_);
  stop_ = true;
  changed_.NotifyAll();
}

bool TrainerLink::SaveRequested() const {
  MutexLock lock(mu_);
  return save_;
}

void TrainerLink::SaveDone() {
  MutexLock lock(mu_);
  save_ = false;
}

}  // namespace mega::engine
