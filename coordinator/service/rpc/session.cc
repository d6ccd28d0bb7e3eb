// WorkerService.Session: a worker's messages go to the core one by one (the next is read when the
// core has seen the last, so a session queues at most one); the core's go out in order, one write
// in flight.
#include <deque>
#include <utility>

#include "base/log.h"
#include "base/message_size.h"
#include "coordinator/core/nodes/hello.h"
#include "coordinator/service/rpc/rpcs.h"
#include "coordinator/service/rpc_status.h"
#include "coordinator/service/stream_handle.h"

namespace mega::service {
namespace {

constexpr size_t kMostQueuedMessages = 10'000;
constexpr size_t kMostQueuedBytes = 4 * size_t{kMostMessageBytes};

class SessionReactor final
    : public grpc::ServerBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage> {
 public:
  using Handle = StreamHandle<SessionReactor>;

  SessionReactor(const Shell& shell, Context* context)
      : shell_(shell), context_(context), handle_(std::make_shared<Handle>(this)) {
    StartRead(&message_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return End(grpc::Status::OK);  // the worker closed its side, or the network did
    if (session_ == 0) {
      if (!message_.has_hello()) {
        return End(FieldInvalid("HELLO_EXPECTED", "hello",
                                "the first message of a session must be a hello"));
      }
      const std::string& name = message_.hello().node().name();
      if (std::string why = core::WhatIsWrongWithNodeName(name); !why.empty()) {
        return RefuseForEver(std::move(why));
      }
      node_ = name;
      session_ = shell_.sessions.Open(node_, std::make_shared<Writer>(handle_));
      log::Info("worker connected",
                {{"node", node_}, {"session", session_}, {"peer", context_->peer()}});
    }
    v1::CoreEvent event;
    event.mutable_worker()->set_node(node_);
    event.mutable_worker()->set_session(session_);
    *event.mutable_worker()->mutable_message() = std::move(message_);
    shell_.loop.Put(std::move(event), [handle = handle_] {
      handle->With([](SessionReactor& reactor) { reactor.ReadNext(); });
    });
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(mu_);
    writing_ = false;
    if (!ok) return FinishLocked(grpc::Status(grpc::StatusCode::UNAVAILABLE, "write failed"));
    queued_bytes_ -= queue_.front().ByteSizeLong();
    queue_.pop_front();
    PumpLocked();
  }

  void OnCancel() override { End(grpc::Status(grpc::StatusCode::CANCELLED, "")); }

  void OnDone() override {
    handle_->Detach();
    if (session_ != 0) {
      shell_.sessions.Closed(session_);
      v1::CoreEvent event;
      event.mutable_session_closed()->set_node(node_);
      event.mutable_session_closed()->set_session(session_);
      shell_.loop.Put(std::move(event));
      log::Info("worker disconnected", {{"node", node_}, {"session", session_}});
    }
    delete this;
  }

 private:
  class Writer final : public SessionWriter {
   public:
    explicit Writer(std::shared_ptr<Handle> handle) : handle_(std::move(handle)) {}
    void Send(v1::CoordinatorMessage message) override {
      handle_->With([&](SessionReactor& reactor) { reactor.Send(std::move(message)); });
    }
    void Close() override {
      handle_->With([](SessionReactor& reactor) { reactor.CloseWhenSent(); });
    }

   private:
    const std::shared_ptr<Handle> handle_;
  };

  // With a status alone, the worker would go on dialling.
  void RefuseForEver(std::string why) {
    v1::CoordinatorMessage message;
    message.mutable_reject()->set_reason(std::move(why));
    message.mutable_reject()->set_fatal(true);
    Queue(std::move(message));
    CloseWhenSent();
  }

  void ReadNext() {
    MutexLock lock(mu_);
    if (!finished_) StartRead(&message_);
  }

  void Send(v1::CoordinatorMessage message) {
    // Cancelled without the lock: OnCancel takes it.
    if (!Queue(std::move(message))) context_->TryCancel();
  }

  // False: too much waits already; a Finish would only wait behind it.
  bool Queue(v1::CoordinatorMessage message) {
    MutexLock lock(mu_);
    if (finished_ || closing_) return true;
    const size_t bytes = message.ByteSizeLong();
    if (queue_.size() >= kMostQueuedMessages || queued_bytes_ + bytes > kMostQueuedBytes) {
      log::Warn("worker does not take its messages; session cut",
                {{"node", node_}, {"session", session_}, {"queued", queue_.size()}});
      closing_ = true;
      return false;
    }
    queued_bytes_ += bytes;
    queue_.push_back(std::move(message));
    PumpLocked();
    return true;
  }

  void CloseWhenSent() {
    MutexLock lock(mu_);
    closing_ = true;
    PumpLocked();
  }

  void End(grpc::Status status) {
    MutexLock lock(mu_);
    FinishLocked(std::move(status));
  }

  void PumpLocked() MEGA_REQUIRES(mu_) {
    if (finished_ || writing_) return;
    if (!queue_.empty()) {
      writing_ = true;
      StartWrite(&queue_.front());
    } else if (closing_) {
      FinishLocked(grpc::Status::OK);
    }
  }

  void FinishLocked(grpc::Status status) MEGA_REQUIRES(mu_) {
    if (std::exchange(finished_, true)) return;
    Finish(std::move(status));
  }

  const Shell shell_;
  Context* const context_;
  const std::shared_ptr<Handle> handle_;
  v1::WorkerMessage message_;  // of the read in flight
  std::string node_;           // with session_: set before the first message reaches the core
  int64_t session_ = 0;

  Mutex mu_;
  std::deque<v1::CoordinatorMessage> queue_ MEGA_GUARDED_BY(mu_);  // front: the write in flight
  size_t queued_bytes_ MEGA_GUARDED_BY(mu_) = 0;
  bool writing_ MEGA_GUARDED_BY(mu_) = false;
  bool closing_ MEGA_GUARDED_BY(mu_) = false;
  bool finished_ MEGA_GUARDED_BY(mu_) = false;
};

}  // namespace

grpc::ServerBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage>* Session(const Shell& shell,
                                                                            Context* context) {
  return new SessionReactor(shell, context);
}

}  // namespace mega::service
