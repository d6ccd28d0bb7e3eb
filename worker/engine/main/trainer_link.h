// The engine's end of TrainerService: one stream to the worker over its Unix socket.
// Outgoing messages are queued and written by a thread of the link, so the step loop never waits
// for the worker. The link also is the rank's conscience: it ends the process
//   within a second when the stream closes and no Handover is in force,
//   at the end of the lease, whatever else is going on, its own destruction included.
// After a Handover it attaches again, to the next worker, until the time the Handover named.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "mega/v1/trainer.grpc.pb.h"

namespace mega::engine {

class TrainerLink {
 public:
  struct Options {
    std::string socket;  // path
    v1::RankRef rank;
  };

  TrainerLink(Options options, const Clock& clock);
  ~TrainerLink();  // drains the queue (at most 2 s) and closes the stream

  // Waits for the worker's orders. DEADLINE_EXCEEDED or UNAVAILABLE when none come.
  absl::StatusOr<v1::StartTraining> WaitForStart(absl::Duration timeout);
  absl::StatusOr<v1::Connect> WaitForConnect(absl::Duration timeout);
  // The commit of the checkpoint of `step`, or of a later one. DATA_LOSS with the coordinator's
  // reason when it rejected that step, DEADLINE_EXCEEDED when it said nothing in time, CANCELLED
  // when a stop comes first.
  absl::Status WaitForCommit(int64_t step, absl::Duration timeout);
  // Newest committed manifest not yet taken.
  std::optional<v1::Manifest> TakeCommitted();
  // Steps whose checkpoint the coordinator rejected, not yet taken; the newest of them.
  std::vector<int64_t> TakeRejected();
  bool StopRequested() const;
  // As if the worker had said stop.
  void RequestStop();
  // The worker asked for a save (SaveNow) that has not been made yet.
  bool SaveRequested() const;
  void SaveDone();  // or there will be none; answers all requests so far

  // Thread-safe, never blocks on the network. Step reports beyond 10,000 waiting ones push out the
  // oldest; everything else is kept.
  void Send(v1::EngineMessage message);

 private:
  void Run();                       // attach, read, re-attach
  bool AttachOnce(bool readopted);  // returns when the stream has ended
  void WatchLease();
  void Handle(v1::TrainerMessage message);

  const Options options_;
  const Clock& clock_;

  mutable Mutex mu_;
  CondVar changed_;
  std::deque<v1::EngineMessage> outbox_ MEGA_GUARDED_BY(mu_);
  std::optional<v1::StartTraining> start_ MEGA_GUARDED_BY(mu_);
  std::optional<v1::Connect> connect_ MEGA_GUARDED_BY(mu_);
  std::deque<v1::Manifest> committed_ MEGA_GUARDED_BY(mu_);
  int64_t committed_step_ MEGA_GUARDED_BY(mu_) = -1;
  std::map<int64_t, std::string> rejected_ MEGA_GUARDED_BY(mu_);  // reasons of the newest steps
  std::vector<int64_t> rejected_steps_ MEGA_GUARDED_BY(mu_);      // not yet taken
  bool stop_ MEGA_GUARDED_BY(mu_) = false;
  bool save_ MEGA_GUARDED_BY(mu_) = false;
  bool closing_ MEGA_GUARDED_BY(mu_) = false;
  bool attached_ MEGA_GUARDED_BY(mu_) = false;
  bool left_ MEGA_GUARDED_BY(mu_) = false;         // the stream thread has ended
  int64_t lease_end_ns_ MEGA_GUARDED_BY(mu_) = 0;  // 0: none told yet
  int64_t handover_until_ns_ MEGA_GUARDED_BY(mu_) = 0;
  std::string next_socket_ MEGA_GUARDED_BY(mu_);
  std::shared_ptr<grpc::ClientContext> context_ MEGA_GUARDED_BY(mu_);

  std::jthread lease_thread_;
  std::jthread stream_thread_;
};

}  // namespace mega::engine
