// A server stream that asks for its next message instead of being handed messages: a slow reader
// costs nothing but its own place. One write in flight, one Finish, whatever the order in which
// gRPC's callbacks and wake-ups come.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "base/mutex.h"
#include "coordinator/service/failed_call.h"
#include "coordinator/service/read_model.h"
#include "grpcpp/grpcpp.h"

namespace mega::service {

template <typename Response>
class PullStream : public grpc::ServerWriteReactor<Response> {
 public:
  void OnWriteDone(bool ok) final {
    MutexLock lock(mu_);
    writing_ = false;
    if (!ok || cancelled_) return FinishLocked(grpc::Status(grpc::StatusCode::CANCELLED, ""));
    PumpLocked();
  }
  void OnCancel() final {
    MutexLock lock(mu_);
    cancelled_ = true;
    if (!writing_) FinishLocked(grpc::Status(grpc::StatusCode::CANCELLED, ""));
  }
  void OnDone() final {
    subscription_.reset();  // no wake-up after this
    Closed();
    delete this;
  }

 protected:
  enum class Next { kWrite, kWait, kEnd };
  // Fills `out` (kWrite) or `end` (kEnd), or waits for a wake-up. Never called concurrently.
  virtual Next Pull(Response& out, grpc::Status& end) = 0;
  // Before the object goes.
  virtual void Closed() {}

  // Last act of the constructor of a subclass: from here on Pull may be called.
  void Open(ReadModel& reads, const core::JobUid& uid) {
    subscription_ = std::make_unique<ReadModel::Subscription>(reads, uid, [this] { this->Wake(); });
    Wake();
  }
  void Wake() {
    Update([] {});
  }
  // The same after `change`, which no Pull runs beside.
  template <typename Change>
  void Update(Change&& change) {
    MutexLock lock(mu_);
    change();
    if (!writing_) PumpLocked();
  }

 private:
  void PumpLocked() MEGA_REQUIRES(mu_) {
    if (finished_ || cancelled_) return;
    response_.Clear();
    grpc::Status end;
    switch (Pull(response_, end)) {
      case Next::kWrite:
        writing_ = true;
        this->StartWrite(&response_);
        return;
      case Next::kWait:
        return;
      case Next::kEnd:
        return FinishLocked(std::move(end));
    }
  }
  void FinishLocked(grpc::Status status) MEGA_REQUIRES(mu_) {
    if (std::exchange(finished_, true)) return;
    this->Finish(std::move(status));
  }

  Mutex mu_;
  bool writing_ MEGA_GUARDED_BY(mu_) = false;
  bool cancelled_ MEGA_GUARDED_BY(mu_) = false;
  bool finished_ MEGA_GUARDED_BY(mu_) = false;
  Response response_;  // of the write in flight
  std::unique_ptr<ReadModel::Subscription> subscription_;
};

}  // namespace mega::service
