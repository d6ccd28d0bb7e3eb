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

  // `timeout` counts from Start; `latest` is when the operation must have ended even if everything
  // before it takes all the time it may. `waiters` counts the threads that wait on work of one
  // loop: it polls harder while any does.
  State(std::string name, int64_t sequence, absl::Duration timeout, TimePoint latest,
        std::shared_ptr<std::atomic<int>> waiters)
      : name_(std::move(name)),
        sequence_(sequence),
        timeout_(timeout),
        latest_(latest),
        waiters_(std::move(waiters)) {}

  // The loop's thread: the operation is under way from now on.
  void Start() {
    deadline_ = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(timeout_);
  }

  void Finish(absl::Status status) MEGA_EXCLUDES(mu_);  // once
  absl::Status Wait() MEGA_EXCLUDES(mu_);
  bool done() const { return done_.load(std::memory_order_acquire); }
  int64_t sequence() const { return sequence_; }
  absl::Duration timeout() const { return timeout_; }
  TimePoint deadline() const { return deadline_; }  // the loop's thread, after Start

 private:
  const std::string name_;
  const int64_t sequence_;
  const absl::Duration timeout_;
  const TimePoint latest_;
  TimePoint deadline_;
  const std::shared_ptr<std::atomic<int>> waiters_;
  std::atomic<bool> done_{false};
  Mutex mu_;
  CondVar finished_;
  absl::Status status_ MEGA_GUARDED_BY(mu_);
};

}  // namespace mega::distributed
