// Makes numbered batches durable, in order, off the loop thread. Batches that wait together are
// committed together (group commit), so a slow disk costs latency and not throughput.
#pragma once

#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "coordinator/state/state_store.h"
#include "mega/v1/coordinator.pb.h"

namespace mega::state {

class CommitThread {
 public:
  struct Callbacks {
    // Every batch up to `number` is durable. On the commit thread.
    std::function<void(int64_t number)> durable;
    // Once, on the commit thread; nothing is committed after it. The process must stop: what is on
    // the disk is unknown, and a retried sync may report success for lost data.
    std::function<void(absl::Status)> failed;
    // Seconds of one Commit call, for the exporter. May be empty.
    std::function<void(double seconds)> measured;
  };

  // `store` outlives this.
  CommitThread(StateStore& store, Callbacks callbacks);
  // Commits what was submitted, then joins.
  ~CommitThread();

  // Numbers rise. An empty batch becomes durable when those before it are.
  void Submit(int64_t number, std::vector<v1::Mutation> mutations);

 private:
  struct Batch {
    int64_t number = 0;
    std::vector<v1::Mutation> mutations;
  };
  void Run();

  StateStore& store_;
  const Callbacks callbacks_;
  Mutex mu_;
  CondVar wake_;
  std::vector<Batch> waiting_ MEGA_GUARDED_BY(mu_);
  bool stop_ MEGA_GUARDED_BY(mu_) = false;
  std::jthread thread_;  // last: starts when the rest is there
};

}  // namespace mega::state
