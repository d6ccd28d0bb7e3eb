// A stream of which messages are read one at a time: the next when somebody asks for it. One
// Finish, and no read after it, whatever the order in which gRPC's callbacks and others' come.
#pragma once

#include <memory>
#include <utility>

#include "base/mutex.h"
#include "coordinator/service/stream_handle.h"
#include "grpcpp/grpcpp.h"

namespace mega::service {

// Self derives from this, and calls ReadNext when it is constructed; Reactor is a
// grpc::ServerReadReactor or ServerBidiReactor of some messages, of which Message is read.
template <typename Self, typename Reactor, typename Message>
class ReadStream : public Reactor {
 public:
  void OnReadDone(bool ok) final { ok ? OnMessage() : OnEndOfReads(); }
  void OnCancel() final { End(grpc::Status(grpc::StatusCode::CANCELLED, "")); }
  void OnDone() final {
    handle_->Detach();
    Closed();
    delete this;
  }

 protected:
  using Handle = StreamHandle<Self>;

  explicit ReadStream(Self* self) : handle_(std::make_shared<Handle>(self)) {}

  // message_ was read, and is the subclass's until ReadNext. Never called concurrently.
  virtual void OnMessage() = 0;
  // The peer has closed its side, or the network did.
  virtual void OnEndOfReads() = 0;
  // Before the object goes; nothing reaches it any more.
  virtual void Closed() {}

  void ReadNext() {
    MutexLock lock(mu_);
    if (!finished_) this->StartRead(&message_);
  }
  void End(grpc::Status status) {
    MutexLock lock(mu_);
    EndLocked(std::move(status));
  }
  void EndLocked(grpc::Status status) MEGA_REQUIRES(mu_) {
    if (!std::exchange(finished_, true)) this->Finish(std::move(status));
  }

  const std::shared_ptr<Handle> handle_;
  Message message_;  // of the read in flight
  Mutex mu_;
  bool finished_ MEGA_GUARDED_BY(mu_) = false;
};

}  // namespace mega::service
