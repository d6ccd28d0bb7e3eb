#include <sched.h>

#include "worker/engine/distributed/work_state.h"

namespace mega::distributed {
namespace {

// Short operations end while we still yield; a sleeping wait costs a wake-up.
constexpr auto kYieldFor = std::chrono::microseconds(50);
// The loop ends every operation at its deadline; past the latest of them and this, it is stuck.
constexpr auto kGrace = std::chrono::seconds(10);

}  // namespace

void Work::State::Finish(absl::Status status) {
  MutexLock lock(mu_);
  status_ = std::move(status);
  done_.store(true, std::memory_order_release);
  finished_.NotifyAll();
}

absl::Status Work::State::Wait() {
  struct Waiting {
    std::atomic<int>& count;
    explicit Waiting(std::atomic<int>& count_in) : count(count_in) { count.fetch_add(1); }
    ~Waiting() { count.fetch_sub(1); }
  } waiting(*waiters_);
  const auto start = std::chrono::steady_clock::now();
  while (!done() && std::chrono::steady_clock::now() < start + kYieldFor) sched_yield();
  MutexLock lock(mu_);
  while (!done()) {
    if (!finished_.WaitUntil(mu_, latest_ + kGrace) && !done())
      return absl::DeadlineExceededError(fmt::format(
          "{} #{}: the progress thread did not end it at its deadline", name_, sequence_));
  }
  return status_;
}

absl::Status Work::Wait() { return state_ == nullptr ? absl::OkStatus() : state_->Wait(); }
bool Work::Done() const { return state_ == nullptr || state_->done(); }
int64_t Work::sequence() const { return state_ == nullptr ? 0 : state_->sequence(); }

}  // namespace mega::distributed
