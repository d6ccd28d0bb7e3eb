// Writes rank 0's step reports into the history, then tells the readers. A thread of its own: a
// disk that stalls must delay no heartbeat.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "coordinator/state/state_store.h"
#include "mega/v1/telemetry.pb.h"

namespace mega::service {

class StepRecorder {
 public:
  // `recorded` is called, in order, for each report that is in the history; `failed` once, when the
  // store can take nothing any more.
  StepRecorder(state::StateStore& store, std::function<void(const v1::StepReport&)> recorded,
               std::function<void(const absl::Status&)> failed);
  // Records what was added, then joins.
  ~StepRecorder();

  // While the disk is so slow that too many wait, the newest are dropped (and counted).
  void Add(const v1::StepReport& report);
  // Calls `done` when all that was added before is in the history: the worker's receipt.
  void AfterRecorded(std::function<void()> done);
  int64_t dropped() const;

 private:
  void Run();

  state::StateStore& store_;
  const std::function<void(const v1::StepReport&)> recorded_;
  const std::function<void(const absl::Status&)> failed_;
  mutable Mutex mu_;
  CondVar wake_;
  std::vector<v1::StepReport> waiting_ MEGA_GUARDED_BY(mu_);
  std::vector<std::function<void()>> receipts_ MEGA_GUARDED_BY(mu_);
  int64_t dropped_ MEGA_GUARDED_BY(mu_) = 0;
  bool stop_ MEGA_GUARDED_BY(mu_) = false;
  std::jthread thread_;  // last: starts when the rest is there
};

}  // namespace mega::service
