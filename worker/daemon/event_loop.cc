#include "worker/daemon/event_loop.h"

namespace mega::daemon {

EventLoop::EventLoop() : thread_([this] { Run(); }) {}

EventLoop::~EventLoop() { Stop(); }

void EventLoop::PostAfter(absl::Duration delay, Task task) {
  const auto due = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(delay);
  MutexLock lock(mu_);
  if (stopping_) return;
  tasks_.emplace(Due{due, ++arrivals_}, std::move(task));
  changed_.NotifyOne();
}

void EventLoop::Stop() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    changed_.NotifyOne();
  }
  if (thread_.joinable()) thread_.join();
  MutexLock lock(mu_);
  tasks_.clear();
}

void EventLoop::Run() {
  while (true) {
    Task task;
    {
      MutexLock lock(mu_);
      while (!stopping_) {
        const auto now = std::chrono::steady_clock::now();
        if (tasks_.empty()) {
          changed_.WaitUntil(mu_, now + std::chrono::seconds(1));
        } else if (tasks_.begin()->first.first > now) {
          changed_.WaitUntil(mu_, tasks_.begin()->first.first);
        } else {
          break;
        }
      }
      if (stopping_) return;
      task = std::move(tasks_.begin()->second);
      tasks_.erase(tasks_.begin());
    }
    task();
  }
}

}  // namespace mega::daemon
