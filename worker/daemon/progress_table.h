// What the ranks of this node told last of their progress, for the coordinator: what changed, at
// most once a heartbeat, and all of it anew at the start of a session. Thread-safe; never blocks.
// It needs no decision of the loop, so that a disk on which that waits does not look like ranks
// that hang.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "absl/time/time.h"
#include "base/mutex.h"
#include "mega/v1/trainer.pb.h"
#include "mega/v1/worker.pb.h"
#include "worker/daemon/rank_key.h"

namespace mega::daemon {

class ProgressTable {
 public:
  // `send` may wait for a call of Introduce that is under way.
  ProgressTable(absl::Duration heartbeat, std::function<void(v1::WorkerMessage)> send)
      : heartbeat_(heartbeat), send_(std::move(send)) {}

  void Told(const RankKey& key, const v1::Progress& progress, absl::Duration now);
  // Sends what had to wait.
  void Flush(absl::Duration now);
  void Forget(const RankKey& key);  // its stream has ended: nothing more is told
  // Adds the newest of every rank.
  void Introduce(std::vector<v1::WorkerMessage>& words) const;
  void Stop();  // nothing is sent any more

 private:
  struct Entry {
    v1::RankProgress newest;
    absl::Duration sent = -absl::InfiniteDuration();
    bool waits = false;
  };

  const absl::Duration heartbeat_;
  const std::function<void(v1::WorkerMessage)> send_;

  void Send(const v1::RankProgress& progress) MEGA_REQUIRES(send_mu_);

  Mutex send_mu_;  // taken before mu_, and held while something is sent: it is in order
  bool stopped_ MEGA_GUARDED_BY(send_mu_) = false;
  mutable Mutex mu_;
  std::map<RankKey, Entry> ranks_ MEGA_GUARDED_BY(mu_);
};

}  // namespace mega::daemon
