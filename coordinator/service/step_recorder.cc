#include "coordinator/service/step_recorder.h"

#include <chrono>
#include <utility>

namespace mega::service {
namespace {

constexpr size_t kMostWaiting = 100'000;

}  // namespace

StepRecorder::StepRecorder(state::StateStore& store,
                           std::function<void(const v1::StepReport&)> recorded,
                           std::function<void(const absl::Status&)> failed)
    : store_(store),
      recorded_(std::move(recorded)),
      failed_(std::move(failed)),
      thread_([this] { Run(); }) {}

StepRecorder::~StepRecorder() {
  MutexLock lock(mu_);
  stop_ = true;
  wake_.NotifyAll();
}

void StepRecorder::Add(const v1::StepReport& report) {
  MutexLock lock(mu_);
  if (waiting_.size() >= kMostWaiting) {
    ++dropped_;
    return;
  }
  waiting_.push_back(report);
  wake_.NotifyAll();
}

void StepRecorder::AfterRecorded(std::function<void()> done) {
  MutexLock lock(mu_);
  receipts_.push_back(std::move(done));
  wake_.NotifyAll();
}

int64_t StepRecorder::dropped() const {
  MutexLock lock(mu_);
  return dropped_;
}

void StepRecorder::Run() {
  bool failing = false;
  while (true) {
    std::vector<v1::StepReport> reports;
    std::vector<std::function<void()>> receipts;
    {
      MutexLock lock(mu_);
      while (waiting_.empty() && receipts_.empty() && !stop_) {
        wake_.WaitFor(mu_, std::chrono::seconds(1));
      }
      if (waiting_.empty() && receipts_.empty()) return;
      reports.swap(waiting_);
      receipts.swap(receipts_);
    }
    const absl::Status status = reports.empty() ? absl::OkStatus() : store_.AppendSteps(reports);
    if (!status.ok() && !std::exchange(failing, true)) failed_(status);
    // Also when it failed: the worker could only send the same again.
    for (auto& receipt : receipts) receipt();
    if (failing) continue;
    for (const v1::StepReport& report : reports) recorded_(report);
  }
}

}  // namespace mega::service
