// WorkerService.Session: a worker's messages go to the core one by one (the next is read when the
// core has seen the last, so a session queues at most one); the core's go out in order, one write
// in flight.
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/message_size.h"
#include "coordinator/core/nodes/hello.h"
#include "coordinator/service/access.h"
#include "coordinator/service/read_stream.h"
#include "coordinator/service/rpc/rpcs.h"
#include "coordinator/service/rpc_status.h"
#include "grpcpp/alarm.h"

namespace mega::service {
namespace {

constexpr size_t kMostQueuedMessages = 10'000;
constexpr size_t kMostQueuedBytes = 4 * size_t{kMostMessageBytes};

using BidiReactor = grpc::ServerBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage>;

class SessionReactor final : public ReadStream<SessionReactor, BidiReactor, v1::WorkerMessage> {
 public:
  SessionReactor(const Shell& shell, Context* context)
      : ReadStream(this), shell_(shell), context_(context) {
    hello_deadline_.Set(
        std::chrono::system_clock::now() + absl::ToChronoMilliseconds(shell.hello_deadline),
        [handle = handle_](bool is_due) {
          if (is_due) handle->With([](SessionReactor& reactor) { reactor.EndUnlessGreeted(); });
        });
    ReadNext();
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(mu_);
    writing_ = false;
    if (!ok) return EndLocked(grpc::Status(grpc::StatusCode::UNAVAILABLE, "write failed"));
    queued_bytes_ -= queue_.front().ByteSizeLong();
    queue_.pop_front();
    PumpLocked();
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

  void OnMessage() override {
    // Messages are kept, compared and passed on, so what this release does not know of goes at
    // once. But a manifest keeps what a newer worker saves with its checkpoint, within the bound of
    // manifests.
    if (!message_.has_checkpoint_part()) message_.DiscardUnknownFields();
    if (session_ == 0) {
      if (!message_.has_hello()) {
        return End(FieldInvalid("HELLO_EXPECTED", "hello",
                                "the first message of a session must be a hello"));
      }
      const std::string& name = message_.hello().node().name();
      if (std::string why = core::WhatIsWrongWithNodeName(name); !why.empty()) {
        return RefuseForEver(std::move(why));
      }
      if (std::string why = WhyNotNode(CallerOf(*context_), name); !why.empty()) {
        return RefuseForEver(std::move(why));
      }
      {
        MutexLock lock(mu_);
        is_greeted_ = true;
      }
      hello_deadline_.Cancel();
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

  void OnEndOfReads() override { End(grpc::Status::OK); }

  void Closed() override {
    if (session_ == 0) return;
    shell_.sessions.Closed(session_);
    v1::CoreEvent event;
    event.mutable_session_closed()->set_node(node_);
    event.mutable_session_closed()->set_session(session_);
    shell_.loop.Put(std::move(event));
    log::Info("worker disconnected", {{"node", node_}, {"session", session_}});
  }

  // With a status alone, the worker would go on dialling.
  void RefuseForEver(std::string why) {
    v1::CoordinatorMessage message;
    message.mutable_reject()->set_reason(std::move(why));
    message.mutable_reject()->set_fatal(true);
    Queue(std::move(message));
    CloseWhenSent();
  }

  // Who opens sessions and says nothing would hold the memory of each.
  void EndUnlessGreeted() {
    MutexLock lock(mu_);
    if (is_greeted_) return;
    EndLocked(RpcError(absl::StatusCode::kDeadlineExceeded, "HELLO_EXPECTED",
                       fmt::format("no hello came within {}; it must be the first message of a "
                                   "session",
                                   absl::FormatDuration(shell_.hello_deadline))));
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

  void PumpLocked() MEGA_REQUIRES(mu_) {
    if (finished_ || writing_) return;
    if (!queue_.empty()) {
      writing_ = true;
      StartWrite(&queue_.front());
    } else if (closing_) {
      EndLocked(grpc::Status::OK);
    }
  }

  const Shell shell_;
  Context* const context_;
  std::string node_;  // with session_: set before the first message reaches the core
  int64_t session_ = 0;
  grpc::Alarm hello_deadline_;

  std::deque<v1::CoordinatorMessage> queue_ MEGA_GUARDED_BY(mu_);  // front: the write in flight
  size_t queued_bytes_ MEGA_GUARDED_BY(mu_) = 0;
  bool writing_ MEGA_GUARDED_BY(mu_) = false;
  bool closing_ MEGA_GUARDED_BY(mu_) = false;
  bool is_greeted_ MEGA_GUARDED_BY(mu_) = false;
};

}  // namespace

grpc::ServerBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage>* Session(const Shell& shell,
                                                                            Context* context) {
  return new SessionReactor(shell, context);
}

}  // namespace mega::service
