#include "worker/engine/main/progress.h"

#include <string>
#include <utility>

namespace mega::engine {
namespace {

constexpr auto kTellEvery = std::chrono::seconds(1);

}  // namespace

void SendProgress(TrainerLink& link, std::string_view phase, int64_t step) {
  v1::EngineMessage message;
  message.mutable_progress()->set_phase(std::string(phase));
  message.mutable_progress()->set_step(step);
  link.Send(std::move(message));
}

ProgressReporter::ProgressReporter(TrainerLink& link, const distributed::Communicator* group,
                                   std::string_view name)
    : link_(link),
      group_(group),
      name_(name),
      thread_([this](std::stop_token stop) { Run(stop); }) {}

ProgressReporter::~ProgressReporter() {
  thread_.request_stop();
  {
    MutexLock lock(mu_);  // it waits already, or will see the request
    changed_.NotifyAll();
  }
  thread_.join();
}

void ProgressReporter::Set(std::string_view phase, int64_t step) {
  MutexLock lock(mu_);
  if (now_.phase.empty()) changed_.NotifyAll();  // the first word is told at once
  now_.phase = phase;
  now_.step = step;
}

void ProgressReporter::Run(std::stop_token stop) {
  Told told;
  auto next = std::chrono::steady_clock::now();
  while (true) {
    Told now;
    {
      MutexLock lock(mu_);
      while (!stop.stop_requested() && now_.phase.empty()) changed_.WaitFor(mu_, kTellEvery);
      while (!stop.stop_requested() && changed_.WaitUntil(mu_, next)) {
      }
      if (stop.stop_requested()) return;
      now = now_;
    }
    if (group_ != nullptr) now.collective_seq = group_->sequence();
    next = std::chrono::steady_clock::now() + kTellEvery;
    if (now == told) continue;
    told = now;
    v1::EngineMessage message;
    v1::Progress& progress = *message.mutable_progress();
    progress.set_phase(std::string(now.phase));
    progress.set_step(now.step);
    if (group_ != nullptr) {
      progress.set_group(std::string(name_));
      progress.set_collective_seq(now.collective_seq);
    }
    link_.Send(std::move(message));
  }
}

}  // namespace mega::engine
