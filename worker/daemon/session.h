// The worker's session with its coordinator and, on the same thread, its lease: heartbeats leave on
// time and ranks end on time whatever the rest of the daemon is doing. What this thread calls may
// lock for a moment and nothing more.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "mega/v1/worker.pb.h"
#include "worker/daemon/channel.h"
#include "worker/daemon/lease/lease.h"
#include "worker/daemon/outage_notice.h"
#include "worker/daemon/session_stream.h"

namespace mega::daemon {

class Session {
 public:
  struct Callbacks {
    // What the coordinator must know of this worker: the hello (its heartbeat_seq is filled in
    // here) and what follows it. Called from the session's thread.
    std::function<std::vector<v1::WorkerMessage>()> introduce;
    // A lease names its cluster: true if it is another than before, and nothing of that one is
    // kept; an error if this worker cannot leave that one.
    std::function<absl::StatusOr<bool>(const std::string& cluster_id)> join;
    std::function<void(v1::Command)> command;
    std::function<void()> up;    // the first lease of a session came
    std::function<void()> down;  // the session is over, whether it ever was up or not
    std::function<void(int64_t boottime_ns)> push_lease_end;
    std::function<void()> kill_ranks;  // no lease; said again and again while so
    // Half a lease without renewal: what they answer comes back by Feed.
    std::function<void(int64_t round, const v1::WitnessSet& witnesses)> ask_witnesses;
    std::function<void(const v1::RelayedLease&)> relayed;  // answers a Relay
    // What was sent before `sent` (boot time, in this session) has been heard.
    std::function<void(absl::Duration sent)> heard;
    std::function<void(absl::Status)> fatal;  // the coordinator will never take this worker
  };

  Session(Coordinator coordinator, lease::Options options, const Clock& clock, Callbacks callbacks);
  ~Session();

  void Start();  // dials from now on

  // Sends in order, if there is a session; otherwise `introduce` of the next one has to say it.
  void Send(v1::WorkerMessage message);
  // Drops the session and says hello again.
  void Redial();
  // Says goodbye and waits for the coordinator to have it, no longer than `wait`.
  void Goodbye(const std::string& reason, absl::Duration wait);

  // What witnesses answered.
  void Feed(lease::Input input);
  // Carries the heartbeat of another worker. False when there is no session to carry it.
  bool Relay(v1::RelayedHeartbeat heartbeat);

  // From any thread.
  bool MayRun() const;                     // ranks, now
  absl::Duration lease_remaining() const;  // 0: none
  bool connected() const { return connected_.load(); }
  bool HasNoSession() const;  // as a witness says it

 private:
  void Run(std::stop_token stop);
  void Dial(absl::Duration now);
  void Hear(v1::CoordinatorMessage message, absl::Duration now);
  void TakeLease(const v1::Lease& lease, absl::Duration now);
  void HangUp(const absl::Status& why, bool leaving, absl::Duration now);
  void TellOutage(const std::string& why, absl::Duration now);
  void Obey(const lease::Decision& decision, absl::Duration now);

  const Coordinator coordinator_;
  const Clock& clock_;
  const Callbacks callbacks_;

  // The session thread's own.
  lease::State lease_;
  Backoff backoff_;
  OutageNotice outage_;
  std::string refusal_;  // of this session, by either side: nothing more of it is heard
  std::string cut_;      // why this thread cancelled the session; empty: it did not
  absl::Duration dial_at_;
  absl::Duration wake_at_;
  absl::Duration heard_at_;  // newest word of the coordinator, or the dial
  std::deque<std::pair<int64_t, absl::Duration>> receipts_;  // heartbeat → all sent before it left
  std::unique_ptr<SessionStream> stream_;  // written under mu_; read without by this thread

  Mutex mu_;
  CondVar changed_;
  SessionStream* sending_ MEGA_GUARDED_BY(mu_) = nullptr;  // stream_, for other threads
  std::deque<v1::CoordinatorMessage> inbox_ MEGA_GUARDED_BY(mu_);
  std::deque<lease::Input> inputs_ MEGA_GUARDED_BY(mu_);
  std::optional<absl::Status> ended_ MEGA_GUARDED_BY(mu_);
  bool redial_ MEGA_GUARDED_BY(mu_) = false;
  bool leaving_ MEGA_GUARDED_BY(mu_) = false;  // no further session

  std::atomic<bool> connected_{false};
  std::atomic<int64_t> lease_end_ns_{0};
  std::atomic<int64_t> no_session_from_ns_{0};
  std::jthread thread_;
};

}  // namespace mega::daemon
