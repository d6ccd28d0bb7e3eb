// A weak hold on a reactor, which gRPC deletes when its call is over: callbacks that sit in queues
// keep the handle, and reach the reactor only while it lives.
#pragma once

#include <functional>
#include <memory>

#include "base/mutex.h"

namespace mega::service {

template <typename Reactor>
class StreamHandle {
 public:
  explicit StreamHandle(Reactor* reactor) : reactor_(reactor) {}

  // Calls f(reactor), unless the call is over.
  template <typename F>
  void With(F&& f) {
    MutexLock lock(mu_);
    if (reactor_ != nullptr) f(*reactor_);
  }
  // In OnDone, before the reactor goes.
  void Detach() {
    MutexLock lock(mu_);
    reactor_ = nullptr;
  }

 private:
  Mutex mu_;
  Reactor* reactor_ MEGA_GUARDED_BY(mu_);
};

}  // namespace mega::service
