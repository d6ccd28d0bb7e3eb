#include "coordinator/service/work_thread.h"

#include <chrono>
#include <utility>

namespace mega::service {

WorkThread::WorkThread(size_t most_waiting)
    : most_waiting_(most_waiting), thread_([this] { Run(); }) {}

WorkThread::~WorkThread() {
  MutexLock lock(mu_);
  stop_ = true;
  wake_.NotifyAll();
}

bool WorkThread::Post(std::function<void()> task) {
  MutexLock lock(mu_);
  if (stop_ || tasks_.size() >= most_waiting_) return false;
  tasks_.push_back(std::move(task));
  wake_.NotifyAll();
  return true;
}

void WorkThread::Run() {
  while (true) {
    std::function<void()> task;
    {
      MutexLock lock(mu_);
      while (tasks_.empty() && !stop_) wake_.WaitFor(mu_, std::chrono::seconds(1));
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace mega::service
