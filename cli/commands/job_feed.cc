#include "cli/commands/job_feed.h"

#include <algorithm>
#include <chrono>
#include <functional>

namespace mega::cli {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(20);
constexpr absl::Duration kLongestPause = absl::Seconds(1);

}  // namespace

JobFeed::JobFeed(Client& client, const std::string& job_name)
    : client_(client), job_name_(job_name) {
  steps_ = std::jthread([this](std::stop_token stop) {
    v1::StreamStepsRequest request;
    request.set_name(job_name_);
    request.set_from_step(1);
    request.set_follow(true);
    Pump<v1::StepReport>(
        stop, [&] { return client_.StreamSteps(request); },
        [&](v1::StepReport& report) MEGA_NO_THREAD_SAFETY_ANALYSIS {
          request.set_from_step(report.step() + 1);
          batch_.steps.push_back(std::move(report));
        },
        &JobFeed::steps_ended_);
  });
  events_ = std::jthread([this](std::stop_token stop) {
    v1::WatchEventsRequest request;
    request.set_name(job_name_);
    request.set_follow(true);
    Pump<v1::JobEvent>(
        stop, [&] { return client_.WatchEvents(request); },
        [&](v1::JobEvent& event) MEGA_NO_THREAD_SAFETY_ANALYSIS {
          request.set_from_revision(event.revision());
          batch_.events.push_back(std::move(event));
        },
        &JobFeed::events_ended_);
  });
}

JobFeed::~JobFeed() {
  steps_.request_stop();
  events_.request_stop();
}

// `keep` is called with the lock held. Errors are followed by another try: whether the job still
// lives is for the caller to find out.
template <typename Message, typename Open, typename Keep>
void JobFeed::Pump(std::stop_token stop, Open open, Keep keep, bool JobFeed::*ended) {
  absl::Duration pause = kFirstPause;
  while (!stop.stop_requested()) {
    Stream<Message> stream = open();
    absl::Status status;
    {
      // Runs at once when the stop came before.
      const std::stop_callback cancel(stop, [&stream] { stream.Cancel(); });
      for (Message message; stream.Next(&message);) {
        pause = kFirstPause;
        MutexLock lock(mu_);
        keep(message);
        changed_.NotifyAll();
      }
      status = stream.Finish();
    }
    if (status.ok()) {
      MutexLock lock(mu_);
      this->*ended = true;
      changed_.NotifyAll();
      return;
    }
    if (!Pause(stop, pause)) return;
    pause = std::min(pause * 2, kLongestPause);
  }
}

bool JobFeed::Pause(std::stop_token stop, absl::Duration span) {
  const std::stop_callback wake(stop, [this] {
    MutexLock lock(mu_);
    changed_.NotifyAll();
  });
  const auto deadline = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(span);
  MutexLock lock(mu_);
  while (!stop.stop_requested() && changed_.WaitUntil(mu_, deadline)) {
  }
  return !stop.stop_requested();
}

JobFeed::Batch JobFeed::Take(absl::Duration span) {
  const auto deadline = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(span);
  MutexLock lock(mu_);
  while (batch_.steps.empty() && batch_.events.empty() && changed_.WaitUntil(mu_, deadline)) {
  }
  return std::exchange(batch_, {});
}

bool JobFeed::Drained() {
  MutexLock lock(mu_);
  return steps_ended_ && events_ended_ && batch_.steps.empty() && batch_.events.empty();
}

}  // namespace mega::cli
