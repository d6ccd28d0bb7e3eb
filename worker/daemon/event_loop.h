// One thread and its inbox. State that belongs to the loop is touched only by tasks posted to it,
// which run one at a time, in the order of their due times.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "absl/time/time.h"
#include "base/mutex.h"

namespace mega::daemon {

class EventLoop {
 public:
  using Task = std::function<void()>;

  EventLoop();
  ~EventLoop();  // Stop()

  // From any thread, tasks included. After Stop they do nothing.
  void Post(Task task) { PostAfter(absl::ZeroDuration(), std::move(task)); }
  void PostAfter(absl::Duration delay, Task task);

  // Runs the task under way to its end, drops the rest, joins. Not from a task.
  void Stop();

 private:
  using Due = std::pair<std::chrono::steady_clock::time_point, uint64_t>;  // time, arrival

  void Run();

  Mutex mu_;
  CondVar changed_;
  std::map<Due, Task> tasks_ MEGA_GUARDED_BY(mu_);
  uint64_t arrivals_ MEGA_GUARDED_BY(mu_) = 0;
  bool stopping_ MEGA_GUARDED_BY(mu_) = false;
  std::jthread thread_;
};

}  // namespace mega::daemon
