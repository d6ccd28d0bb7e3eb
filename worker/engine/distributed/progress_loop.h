// The thread that moves messages on while the rank computes. Polls while something moves; when
// nothing does it yields, then sleeps in growing naps, because ranks may outnumber cores and the
// one that everybody waits for needs the core. Asleep on a condition when there is no work at all.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/mutex.h"

namespace mega::distributed {

class ProgressLoop {
 public:
  // Called on the loop's thread only.
  class Task {
   public:
    virtual ~Task() = default;
    virtual bool Progress() = 0;    // true when anything moved
    virtual bool busy() const = 0;  // true while something is awaited
  };

  explicit ProgressLoop(std::string thread_name);
  ~ProgressLoop();  // every task must have been removed
  ProgressLoop(const ProgressLoop&) = delete;

  // Runs `call` on the loop's thread, between two rounds, and returns when it has run.
  void Run(absl::FunctionRef<void()> call) MEGA_EXCLUDES(mu_);
  // From a Run call only. Tasks progress in the order added.
  void Add(Task* task) { tasks_.push_back(task); }
  void Remove(Task* task) { std::erase(tasks_, task); }
  // A task has new work.
  void Wake() MEGA_EXCLUDES(mu_);
  const std::shared_ptr<std::atomic<int>>& waiters() const { return waiters_; }

 private:
  struct Call {
    absl::FunctionRef<void()> run;
    bool done = false;
  };
  void Main(std::stop_token stop);
  // Also sleeps, for at most `nap`, when nothing was posted.
  void TakeCalls(std::chrono::nanoseconds nap) MEGA_EXCLUDES(mu_);

  std::vector<Task*> tasks_;  // the loop's thread only
  const std::shared_ptr<std::atomic<int>> waiters_ = std::make_shared<std::atomic<int>>(0);
  Mutex mu_;
  CondVar changed_;
  CondVar called_;
  std::vector<Call*> calls_ MEGA_GUARDED_BY(mu_);
  bool woken_ MEGA_GUARDED_BY(mu_) = false;
  std::atomic<bool> posted_{false};  // calls_ is not empty
  std::jthread thread_;              // last: starts when all else is ready
};

}  // namespace mega::distributed
