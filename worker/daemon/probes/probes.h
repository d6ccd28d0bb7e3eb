// Runs the checks one after the other, each in a child with a deadline, on a thread of its own. A
// child that outlives its SIGKILL is left behind, and its check is not made again while it is
// there.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "worker/daemon/probes/judge.h"
#include "worker/daemon/process.h"

namespace mega::daemon {

class Probes {
 public:
  struct Options {
    std::vector<std::string> program;  // and its arguments; the check's name follows
    ProbeInputs inputs;
    absl::Duration first_after = absl::Seconds(2);
    absl::Duration every = absl::Seconds(30);
    absl::Duration deadline = absl::Seconds(10);  // of one check
  };
  // All findings, after each run in which they changed; on the probes' thread.
  using OnFindings = std::function<void(const std::vector<v1::Finding>&)>;

  Probes(Options options, const Clock& clock, OnFindings on_findings);
  ~Probes();
  void Stop();  // nothing is told any more; from one thread

  // One more folder to look at, the newest of a few: a job's checkpoints go there.
  void Watch(const std::string& path);
  std::vector<v1::Finding> findings() const;
  // The names of all checks, those that need no child too.
  static std::vector<std::string> Names();

 private:
  void Run(std::stop_token stop);
  void MakeAll(std::stop_token stop);
  // DEADLINE_EXCEEDED: no answer in time, or it was told to stop. Others: it cannot be started.
  absl::StatusOr<std::string> Ask(const std::string& check, const std::stop_token& stop);

  const Options options_;
  const Clock& clock_;
  const OnFindings on_findings_;
  Judge judge_;                                           // the thread's own
  std::map<std::string, std::unique_ptr<Process>> left_;  // likewise

  mutable Mutex mu_;
  CondVar changed_;
  std::vector<v1::Finding> findings_ MEGA_GUARDED_BY(mu_);
  std::deque<std::string> watched_ MEGA_GUARDED_BY(mu_);
  std::jthread thread_;
};

}  // namespace mega::daemon
