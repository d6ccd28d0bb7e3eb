// The loop's side of a communicator: runs its collectives one after the other, its sends and
// receives as they come, and ends all of them when something goes wrong, here or on a peer.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "worker/engine/distributed/operation.h"
#include "worker/engine/distributed/progress_loop.h"

namespace mega::distributed {

class CollectiveQueue : public ProgressLoop::Task {
 public:
  // `link` and `group` outlive it. Open and Close run on the loop's thread.
  CollectiveQueue(Group group, Link& link, absl::Duration timeout,
                  std::shared_ptr<std::atomic<int>> waiters);
  void Open();
  // Ends what is pending, tells the peers, and waits (bounded) until no buffer is in use.
  void Close();
  ~CollectiveQueue() override;

  // From the rank's thread. The Work of a failed communicator has ended at once.
  Work Issue(const OperationSpec& spec) MEGA_EXCLUDES(mu_);
  // Of operations issued from now on.
  void SetTimeout(absl::Duration timeout) MEGA_EXCLUDES(mu_);
  // From any thread.
  void Abort(absl::Status why) MEGA_EXCLUDES(mu_);
  int64_t sequence() const { return sequence_.load(std::memory_order_relaxed); }
  int64_t bytes_sent() const { return bytes_sent_.load(std::memory_order_relaxed); }
  const Group& group() const { return group_; }

  bool Progress() override;
  bool busy() const override { return !queue_.empty() || !pairs_.empty() || !failing_.empty(); }

 private:
  using Operations = std::deque<std::unique_ptr<Operation>>;
  struct AbortMessage {
    int32_t code = 0;
    uint8_t farewell = 0;  // the peer closed in peace; only what still needs it fails
    std::array<char, 1000> text{};
  };

  void TakeIssued() MEGA_EXCLUDES(mu_);
  bool TakeAborts();
  bool ProgressAll(Operations& operations, bool one_at_a_time);
  void CheckDeadlines(bool moved);
  absl::Status LostPeer(const Operation& operation) const;
  // Ends all operations with `why` and tells the peers, unless they told us.
  void Fail(absl::Status why, bool tell_peers) MEGA_EXCLUDES(mu_);
  void SendAborts(const absl::Status& why, bool farewell);
  bool SettleFailing();
  bool quiet() const;

  const Group group_;
  Link& link_;
  const std::shared_ptr<std::atomic<int>> waiters_;
  std::atomic<int64_t> sequence_{0}, bytes_sent_{0};
  std::atomic<bool> posted_{false};  // issued_ or abort_ has news

  Mutex mu_;
  absl::Duration timeout_ MEGA_GUARDED_BY(mu_);
  // When the newest operation ends if it and all before it take all the time they may.
  std::chrono::steady_clock::time_point latest_ MEGA_GUARDED_BY(mu_);
  absl::Status failed_ MEGA_GUARDED_BY(mu_);  // not OK: every later operation ends with it
  absl::Status abort_ MEGA_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<Operation>> issued_ MEGA_GUARDED_BY(mu_);
  std::vector<int64_t> sent_to_ MEGA_GUARDED_BY(mu_), received_from_ MEGA_GUARDED_BY(mu_);

  // The loop's thread only.
  bool loop_failed_ = false;
  Operations queue_;      // collectives; the first one is running
  Operations pairs_;      // sends and receives, all running
  Operations failing_;    // ended, but a transfer may still hold a buffer
  Operations abandoned_;  // a transfer would not end
  absl::Status failing_why_;
  std::chrono::steady_clock::time_point failing_since_;
  bool disconnected_ = false;
  std::chrono::steady_clock::time_point next_check_;
  Scratch scratch_;
  AbortMessage abort_out_;
  std::vector<AbortMessage> aborts_in_;
  std::vector<Transfer> abort_sends_, abort_recvs_;
  std::vector<bool> departed_;
};

}  // namespace mega::distributed
