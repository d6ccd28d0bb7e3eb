// What a Work and the progress loop share: done, how it ended, and who waits.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "worker/engine/distributed/communicator.h"

namespace mega::distributed {

class Work::State {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // `waiters` counts the threads that wait on work of one loop: it polls harder while any does.
  State(std::string name, int64_t sequence, TimePoint deadline,
        std::shared_ptr<std::atomic<int>> waiters)
      : name_(std::move(name)),
        sequence_(sequence),
        deadline_(deadline),
        waiters_(std::move(waiters)) {}

  void Finish(absl::Status status) MEGA_EXCLUDES(mu_);  // once
  absl::Status Wait() MEGA_EXCLUDES(mu_);
  bool done() const { return done_.load(std::memory_order_acquire); }
  int64_t sequence() const { return sequence_; }
  TimePoint deadline() const { return deadline_; }

 private:
  const std::string name_;
  const int64_t sequence_;
  const TimePoint deadline_;
  const std::shared_ptr<std::atomic<int>> waiters_;
  std::atomic<bool> done_{false};
  Mutex mu_;
  CondVar finished_;
  absl::Status status_ MEGA_GUARDED_BY(mu_);
};

}  // namespace mega::distributed
