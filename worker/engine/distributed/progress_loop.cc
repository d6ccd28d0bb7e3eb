#include "worker/engine/distributed/progress_loop.h"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include <chrono>
#include <utility>

#include "base/check.h"

namespace mega::distributed {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr auto kIdleNap = milliseconds(5);  // no work: still notices a lost peer
// With somebody waiting, yield this long before the first nap.
constexpr auto kYieldFor = microseconds(100);
constexpr auto kFirstNap = microseconds(20);
constexpr auto kLongestNap = microseconds(400);
constexpr int kPollsBeforeYield = 64;

}  // namespace

ProgressLoop::ProgressLoop(std::string thread_name)
    : thread_([this, name = std::move(thread_name)](std::stop_token stop) {
        pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
        prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);  // naps of microseconds
        Main(std::move(stop));
      }) {}

ProgressLoop::~ProgressLoop() {
  thread_.request_stop();
  Wake();
  thread_.join();
  MEGA_CHECK(tasks_.empty());
}

void ProgressLoop::Run(absl::FunctionRef<void()> call) {
  Call entry{call};
  MutexLock lock(mu_);
  calls_.push_back(&entry);
  posted_.store(true, std::memory_order_release);
  changed_.NotifyOne();
  // The loop answers between two rounds; a call itself bounds its own time.
  while (!entry.done) called_.WaitFor(mu_, milliseconds(100));
}

void ProgressLoop::Wake() {
  MutexLock lock(mu_);
  woken_ = true;
  changed_.NotifyOne();
}

void ProgressLoop::TakeCalls(std::chrono::nanoseconds nap) {
  std::vector<Call*> calls;
  {
    MutexLock lock(mu_);
    if (nap.count() > 0 && calls_.empty() && !woken_) changed_.WaitFor(mu_, nap);
    woken_ = false;
    posted_.store(false, std::memory_order_relaxed);
    calls.swap(calls_);
  }
  for (Call* call : calls) call->run();
  if (calls.empty()) return;
  MutexLock lock(mu_);
  for (Call* call : calls) call->done = true;
  called_.NotifyAll();
}

void ProgressLoop::Main(std::stop_token stop) {
  int still = 0;  // rounds without movement
  steady_clock::time_point still_since;
  std::chrono::nanoseconds nap = kFirstNap;
  while (!stop.stop_requested()) {
    if (posted_.load(std::memory_order_acquire)) TakeCalls({});
    bool moved = false;
    bool busy = false;
    for (Task* task : tasks_) moved |= task->Progress();
    for (Task* task : tasks_) busy |= task->busy();
    if (moved) {
      still = 0;
      nap = kFirstNap;
      continue;
    }
    if (!busy) {
      TakeCalls(kIdleNap);
      still = 0;
      continue;
    }
    if (++still < kPollsBeforeYield) continue;
    const auto now = steady_clock::now();
    if (still == kPollsBeforeYield) still_since = now;
    if (waiters_->load(std::memory_order_relaxed) > 0 && now < still_since + kYieldFor) {
      sched_yield();
    } else {
      TakeCalls(nap);
      nap = std::min<std::chrono::nanoseconds>(nap * 5 / 4, kLongestNap);
    }
  }
  TakeCalls({});
}

}  // namespace mega::distributed
