// What the rank is doing, told to the worker.
#pragma once

#include <cstdint>
#include <string_view>
#include <thread>

#include "base/mutex.h"
#include "worker/engine/distributed/communicator.h"
#include "worker/engine/main/trainer_link.h"

namespace mega::engine {

void SendProgress(TrainerLink& link, std::string_view phase, int64_t step);

// Tells it from a thread of its own while the rank trains: where it is, and the newest collective
// that it joined; the first word at once, then at most once a second and only what changed. So a
// step costs no message, and a rank that waits in a collective has told which.
class ProgressReporter {
 public:
  // `group` (may be null) is called `name`; both outlive this.
  ProgressReporter(TrainerLink& link, const distributed::Communicator* group,
                   std::string_view name);
  ~ProgressReporter();

  void Set(std::string_view phase, int64_t step);  // `phase` lives for ever

 private:
  struct Told {
    std::string_view phase;
    int64_t step = 0;
    int64_t collective_seq = 0;
    friend bool operator==(const Told&, const Told&) = default;
  };

  void Run(std::stop_token stop);

  TrainerLink& link_;
  const distributed::Communicator* const group_;
  const std::string_view name_;

  Mutex mu_;
  CondVar changed_;
  Told now_ MEGA_GUARDED_BY(mu_);  // its collective is asked for when it is told
  std::jthread thread_;
};

}  // namespace mega::engine
