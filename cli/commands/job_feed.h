// The steps and events of a running job, gathered by two threads for one that shows them. Each
// step and event arrives once, also over a coordinator's restart.
#pragma once

#include <thread>
#include <vector>

#include "base/mutex.h"
#include "cli/client/client.h"

namespace mega::cli {

class JobFeed {
 public:
  struct Batch {
    std::vector<v1::StepReport> steps;
    std::vector<v1::JobEvent> events;
  };

  JobFeed(Client& client, const std::string& job_name);
  ~JobFeed();  // cancels the streams and joins the threads

  // What has come since the last call; waits for it at most `span`.
  Batch Take(absl::Duration span);
  // Both streams have ended by themselves: the job has, and everything was taken.
  bool Drained();

 private:
  template <typename Message, typename Open, typename Keep>
  void Pump(std::stop_token stop, Open open, Keep keep, bool JobFeed::*ended);
  // False when asked to stop meanwhile.
  bool Pause(std::stop_token stop, absl::Duration span);

  Client& client_;
  const std::string job_name_;
  Mutex mu_;
  CondVar changed_;
  Batch batch_ MEGA_GUARDED_BY(mu_);
  bool steps_ended_ MEGA_GUARDED_BY(mu_) = false;
  bool events_ended_ MEGA_GUARDED_BY(mu_) = false;
  std::jthread steps_;
  std::jthread events_;
};

}  // namespace mega::cli
