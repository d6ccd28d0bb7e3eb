// One Session call: a queue before gRPC's one write at a time, in which heartbeats go first. Opened
// by the session's thread, which also destroys it, after its end was told.
#pragma once

#include <grpcpp/channel.h>

#include <deque>
#include <functional>
#include <memory>

#include "base/mutex.h"
#include "base/status.h"
#include "mega/v1/worker.grpc.pb.h"
#include "worker/daemon/channel.h"

namespace mega::daemon {

class SessionStream : public grpc::ClientBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage> {
 public:
  // Called from gRPC's threads; they return at once.
  struct Callbacks {
    std::function<void(v1::CoordinatorMessage)> message;
    std::function<void(absl::Status)> ended;  // the last one; the stream may be destroyed after it
  };

  // `hello` is the first message.
  SessionStream(const Coordinator& coordinator, const v1::WorkerMessage& hello,
                Callbacks callbacks);

  // False when the queue is full: the coordinator does not read, and the call should be cancelled.
  bool Send(v1::WorkerMessage message);
  // Before everything that waits; one that was not yet sent is replaced.
  void SendHeartbeat(int64_t seq);
  // Before everything that waits but a heartbeat.
  void SendSoon(v1::WorkerMessage message);
  // On behalf of another worker: turn about with what waits of this one, whatever the others ask.
  // False when too many wait.
  bool SendForAnother(v1::WorkerMessage message);
  // Everything given to Send has left.
  bool Idle() const;
  // No more will be sent; ends the call once the queue has left.
  void Close();
  void Cancel() { context_.TryCancel(); }

 private:
  static constexpr size_t kMaxWaiting = 10'000;
  static constexpr size_t kMaxOfOthers = 1024;

  void WriteNext() MEGA_REQUIRES(mu_);
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  const Callbacks callbacks_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::WorkerService::Stub> stub_;
  grpc::ClientContext context_;
  v1::CoordinatorMessage incoming_;

  mutable Mutex mu_;
  std::deque<v1::WorkerMessage> waiting_ MEGA_GUARDED_BY(mu_);
  std::deque<v1::WorkerMessage> of_others_ MEGA_GUARDED_BY(mu_);
  bool others_turn_ MEGA_GUARDED_BY(mu_) = true;
  v1::WorkerMessage outgoing_ MEGA_GUARDED_BY(mu_);
  bool writing_ MEGA_GUARDED_BY(mu_) = false;
  bool closing_ MEGA_GUARDED_BY(mu_) = false;  // WritesDone after the queue
  bool broken_ MEGA_GUARDED_BY(mu_) = false;
};

}  // namespace mega::daemon
