// One thread and a bounded queue of tasks: planning and validation, kept off the loop and off
// gRPC's callback threads.
#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "base/mutex.h"

namespace mega::service {

class WorkThread {
 public:
  explicit WorkThread(size_t most_waiting);
  // Runs what was posted, then joins.
  ~WorkThread();

  // False: the queue is full and the task was not taken.
  bool Post(std::function<void()> task);

 private:
  void Run();

  const size_t most_waiting_;
  Mutex mu_;
  CondVar wake_;
  std::deque<std::function<void()>> tasks_ MEGA_GUARDED_BY(mu_);
  bool stop_ MEGA_GUARDED_BY(mu_) = false;
  std::jthread thread_;  // last: starts when the rest is there
};

}  // namespace mega::service
