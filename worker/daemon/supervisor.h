// Owns the processes of the ranks: waits on their pidfds, stops them, and never lets one of them
// keep the others waiting. Stop and KillAll may be called from any thread and never block.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "absl/time/time.h"
#include "base/mutex.h"
#include "base/status.h"
#include "worker/daemon/cgroup.h"
#include "worker/daemon/poller.h"
#include "worker/daemon/process.h"
#include "worker/daemon/rank_key.h"

namespace mega::daemon {

class Supervisor {
 public:
  struct Options {
    // A process that outlives SIGKILL by this is reported as unkillable.
    absl::Duration kill_wait = absl::Seconds(5);
    const CgroupParent* cgroups = nullptr;
  };
  // `by_worker`: we had signalled it before it ended. Called from the supervisor's thread.
  using OnExit = std::function<void(const RankKey& key, ProcessExit exit, bool by_worker)>;

  Supervisor(Options options, OnExit on_exit);
  ~Supervisor();  // kills and reaps all

  // Takes a process still held at its gate.
  void Add(const RankKey& key, std::unique_ptr<Process> process);
  // Opens the gate, if `allowed` says so at the very moment (asked under the supervisor's lock, so
  // that KillAll is either before or after). The error says why the program did not start.
  absl::Status Release(const RankKey& key, const std::function<bool()>& allowed);

  // SIGTERM, and SIGKILL after `grace`; a grace of zero is SIGKILL at once.
  void Stop(const RankKey& key, absl::Duration grace);
  void KillAll();

  int unkillable() const;

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Child {
    std::shared_ptr<Process> process;
    std::unique_ptr<Cgroup> cgroup;
    bool by_worker = false;
    std::optional<Time> kill_at;      // grace is over
    std::optional<Time> complain_at;  // SIGKILL was sent and should have worked by then
    bool unkillable = false;
  };

  void Run();
  void ReapEnded();
  Time ServeTimers() MEGA_REQUIRES(mu_);
  void Kill(const RankKey& key, Child& child) MEGA_REQUIRES(mu_);

  const Options options_;
  const OnExit on_exit_;
  Poller poller_;

  mutable Mutex mu_;
  std::map<RankKey, Child> children_ MEGA_GUARDED_BY(mu_);
  bool stopping_ MEGA_GUARDED_BY(mu_) = false;
  std::jthread thread_;
};

}  // namespace mega::daemon
