// SIGTERM as the worker sends it: a request to stop, with SIGKILL some time later.
// Before training there is nothing worth finishing and the signal ends the process, as it does by
// itself. While a Deferral lives, the signal is a request: `ask` is called at once, so that no
// other step begins, and `insist` kStepMayTake later, to get the rank out of a collective whose
// peers do not come. After that the process is leaving anyway and the signal is only noted.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <thread>

#include "base/mutex.h"
#include "base/unique_fd.h"

namespace mega::engine {

class StopSignal {
 public:
  // The step under way may take this long after `ask`.
  static constexpr std::chrono::seconds kStepMayTake{2};

  // Before any other thread is started: threads inherit that the signal is blocked.
  explicit StopSignal(std::chrono::milliseconds step_may_take = kStepMayTake);
  ~StopSignal();

  class Deferral {
   public:
    ~Deferral();  // neither function is called, or still running, after this
    Deferral(const Deferral&) = delete;

   private:
    friend class StopSignal;
    explicit Deferral(StopSignal& signal) : signal_(signal) {}
    StopSignal& signal_;
  };
  // Once. Both are called on a thread of this object and must not block.
  [[nodiscard]] Deferral Defer(std::function<void()> ask, std::function<void()> insist);

  bool came() const;
  // By that signal, so that the exit says what ended the process.
  [[noreturn]] static void EndProcess();

 private:
  void Watch(std::stop_token stop);
  void OnSignal();
  void OnTime();
  int PollTimeoutMs() const;

  const std::chrono::milliseconds step_may_take_;
  UniqueFd signals_, wake_;
  mutable Mutex mu_;
  bool ends_at_once_ MEGA_GUARDED_BY(mu_) = true;
  bool came_ MEGA_GUARDED_BY(mu_) = false;
  std::function<void()> ask_ MEGA_GUARDED_BY(mu_), insist_ MEGA_GUARDED_BY(mu_);
  std::optional<std::chrono::steady_clock::time_point> insist_at_ MEGA_GUARDED_BY(mu_);
  std::jthread thread_;  // last: it uses the rest
};

}  // namespace mega::engine
