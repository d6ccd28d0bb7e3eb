// A thread waits for the signal on a signalfd: nothing has to be done in a signal handler.
#include "worker/engine/main/stop_signal.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>

#include "base/check.h"
#include "base/log.h"

namespace mega::engine {
namespace {

sigset_t OnlyTerm() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

StopSignal::StopSignal(std::chrono::milliseconds step_may_take) : step_may_take_(step_may_take) {
  const sigset_t term = OnlyTerm();
  pthread_sigmask(SIG_BLOCK, &term, nullptr);
  signals_ = UniqueFd(signalfd(-1, &term, SFD_CLOEXEC | SFD_NONBLOCK));
  wake_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  MEGA_CHECK(signals_ && wake_);
  thread_ = std::jthread([this](std::stop_token stop) { Watch(stop); });
}

StopSignal::~StopSignal() {
  thread_.request_stop();
  const uint64_t one = 1;
  if (write(wake_.get(), &one, sizeof(one)) < 0) return;  // full: the thread is awake already
}

StopSignal::Deferral StopSignal::Defer(std::function<void()> ask, std::function<void()> insist) {
  MutexLock lock(mu_);
  ends_at_once_ = false;
  ask_ = std::move(ask);
  insist_ = std::move(insist);
  return Deferral(*this);
}

StopSignal::Deferral::~Deferral() {
  MutexLock lock(signal_.mu_);
  signal_.ask_ = nullptr;
  signal_.insist_ = nullptr;
}

bool StopSignal::came() const {
  MutexLock lock(mu_);
  return came_;
}

void StopSignal::EndProcess() {
  signal(SIGTERM, SIG_DFL);
  const sigset_t term = OnlyTerm();
  pthread_sigmask(SIG_UNBLOCK, &term, nullptr);
  raise(SIGTERM);
  _exit(128 + SIGTERM);
}

int StopSignal::PollTimeoutMs() const {
  MutexLock lock(mu_);
  if (!insist_at_) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(*insist_at_ - std::chrono::steady_clock::now());
  return static_cast<int>(std::max<int64_t>(0, left.count()));
}

void StopSignal::Watch(std::stop_token stop) {
  while (!stop.stop_requested()) {
    pollfd fds[] = {{signals_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    if (poll(fds, 2, PollTimeoutMs()) < 0 && errno != EINTR) return;
    signalfd_siginfo info;
    if (read(signals_.get(), &info, sizeof(info)) == sizeof(info)) OnSignal();
    OnTime();
  }
}

void StopSignal::OnSignal() {
  MutexLock lock(mu_);
  if (ends_at_once_) EndProcess();
  if (came_) return;
  came_ = true;
  log::Info("SIGTERM: the rank stops after the step that is under way");
  if (ask_) ask_();
  insist_at_ = std::chrono::steady_clock::now() + step_may_take_;
}

void StopSignal::OnTime() {
  MutexLock lock(mu_);
  if (!insist_at_ || std::chrono::steady_clock::now() < *insist_at_) return;
  insist_at_.reset();
  if (insist_) insist_();
}

}  // namespace mega::engine
