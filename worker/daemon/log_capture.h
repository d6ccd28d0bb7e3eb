// Reads the pipes of all ranks in one thread and appends to their logs.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <thread>

#include "base/mutex.h"
#include "base/unique_fd.h"
#include "worker/daemon/poller.h"
#include "worker/daemon/rank_key.h"
#include "worker/daemon/rank_log.h"

namespace mega::daemon {

class LogCapture {
 public:
  // Called from the capturing thread once both pipes of a rank are at their end.
  using OnEnd = std::function<void(const RankKey& key)>;

  explicit LogCapture(OnEnd on_end);
  ~LogCapture();

  void Add(const RankKey& key, std::shared_ptr<RankLog> log, UniqueFd out, UniqueFd err);
  // Stops reading a rank whose pipes some descendant of it still holds open.
  void Forget(const RankKey& key);

  int64_t captured_bytes() const { return captured_bytes_.load(std::memory_order_relaxed); }
  // Of these, what no log has: it could not be written.
  int64_t lost_bytes() const { return lost_bytes_.load(std::memory_order_relaxed); }

 private:
  struct Source {
    RankKey key;
    std::shared_ptr<RankLog> log;
    UniqueFd fd;
    bool is_stderr = false;
  };

  void Run();
  void Drain(int fd);

  const OnEnd on_end_;
  Poller poller_;
  std::atomic<int64_t> captured_bytes_{0};
  std::atomic<int64_t> lost_bytes_{0};

  Mutex mu_;
  std::map<int, std::shared_ptr<Source>> sources_ MEGA_GUARDED_BY(mu_);
  std::map<RankKey, int> open_pipes_ MEGA_GUARDED_BY(mu_);
  bool stopping_ MEGA_GUARDED_BY(mu_) = false;
  std::jthread thread_;
};

}  // namespace mega::daemon
