// Ends the process when it does not end by itself: a thread may sit in a call that never returns, a
// write to a stalled disk for one, and whoever joins it with it.
#pragma once

#include <unistd.h>

#include <thread>

#include "base/log.h"
#include "base/mutex.h"

namespace mega::engine {

class LeaveWithin {
 public:
  LeaveWithin(std::chrono::milliseconds time, int exit_code)
      : thread_([this, deadline = std::chrono::steady_clock::now() + time, exit_code] {
          MutexLock lock(mu_);
          while (!left_) {
            if (changed_.WaitUntil(mu_, deadline) || left_) continue;
            log::Error("a thread of the rank does not end; leaving without it");
            _exit(exit_code);
          }
        }) {}
  ~LeaveWithin() {
    MutexLock lock(mu_);
    left_ = true;
    changed_.NotifyAll();
  }

 private:
  Mutex mu_;
  CondVar changed_;
  bool left_ MEGA_GUARDED_BY(mu_) = false;
  std::jthread thread_;  // joins first
};

}  // namespace mega::engine
