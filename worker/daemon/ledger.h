// What this worker owes its coordinator: which ranks run, which have ended, what was said and not
// yet heard. A new session starts from it, and so does the next incarnation. Thread-safe; the locks
// are short, because the session's thread reads it.
//
// An exit is told in every hello until the coordinator has shown that it keeps it: by the start of
// a later attempt of that job. (That a heartbeat sent after it was answered shows less: the answer
// may be faster than the coordinator's disk. From then on an exit only needs to be told shortly.)
// The exits of jobs that never start again go after a day.
//
// Bounds. Exits: beyond kMaxExits the oldest that were heard, of attempts without a rank here;
// others only beyond kMaxUnheard, which no attempt's own exits reach. Their stderr: beyond
// kMaxTails the oldest are shortened. Checkpoint parts: the newest kStepsOwed steps of a rank, for
// the coordinator does not assemble more at a time, and kMaxOwed bytes of all, the lowest steps
// first; exits are never given up for them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/mutex.h"
#include "base/status.h"
#include "mega/v1/worker.pb.h"
#include "worker/daemon/rank_key.h"

namespace mega::daemon {

class Ledger {
 public:
  // `record` of the last incarnation, its ranks already turned into exits.
  explicit Ledger(v1::WorkerRecord record)
      : record_(std::move(record)), durable_seq_(record_.last_command_seq()) {}

  // A lease came from this cluster; "" is a coordinator that does not say. What was kept of another
  // is dropped with its command numbers, and a new generation begins: true. FAILED_PRECONDITION,
  // and nothing changes, while ranks of another run here.
  absl::StatusOr<bool> Join(const std::string& cluster_id);
  int64_t generation() const;
  // False when the command was accepted before, or came in an earlier generation. Its ranks count
  // as running from here on, so that no hello can deny them.
  bool Accept(const v1::Command& command, int64_t generation = 0);
  // Commands up to this one are on disk.
  void SetDurable(int64_t seq);
  int64_t durable_seq() const;
  void SetProcess(const RankKey& key, int64_t pid, int64_t start_time_ticks);
  void Ready(const RankKey& key, const std::string& address);
  void Connected(const std::string& job_uid, int64_t epoch);  // the coordinator knows all addresses
  // A checkpoint part, or the failure of one; owed until it is settled or the end of the rank.
  // Returns how many others were given up for it.
  int Owe(const RankKey& key, int64_t step, const v1::WorkerMessage& message);
  void Committed(const std::string& job_uid, int64_t epoch, int64_t step);  // and those before
  void Rejected(const std::string& job_uid, int64_t epoch, int64_t step);   // this one alone
  // The rank has ended; sent to the coordinator at `now`.
  void Exited(const RankKey& key, const v1::ExitStatus& exit, absl::Duration now);
  // The coordinator has heard all that was sent before `sent`; it may not be on its disk yet.
  void Heard(absl::Duration sent);

  // Hello first, then what is owed. Exits count as sent at `now`.
  std::vector<v1::WorkerMessage> Introduce(const v1::Node& node, absl::Duration now);
  v1::WorkerRecord Record() const;

  static constexpr int kMaxExits = 256;
  static constexpr int kMaxUnheard = 4096;
  static constexpr size_t kMaxTails = 16 << 20;
  static constexpr size_t kMaxHelloTails = 8 << 20;
  static constexpr size_t kShortTail = 4 << 10;
  static constexpr absl::Duration kExitAge = absl::Hours(24);
  static constexpr int64_t kStepsOwed = 4;
  static constexpr size_t kMaxOwed = 128 << 20;

 private:
  struct Telling {  // of an exit
    absl::Duration first;
    absl::Duration newest;
    bool heard = false;
  };
  using Owed = std::map<std::pair<RankKey, int64_t>, v1::WorkerMessage>;

  void SettleSteps(const std::string& job_uid, int64_t epoch, int64_t first, int64_t last)
      MEGA_REQUIRES(mu_);
  void ForgetExits(const std::set<RankKey>& keys) MEGA_REQUIRES(mu_);
  void BoundExits() MEGA_REQUIRES(mu_);
  bool RunsHere(const RankKey& key) const MEGA_REQUIRES(mu_);  // another rank of its attempt
  void Settle(Owed::iterator it) MEGA_REQUIRES(mu_);

  mutable Mutex mu_;
  v1::WorkerRecord record_ MEGA_GUARDED_BY(mu_);
  int64_t durable_seq_ MEGA_GUARDED_BY(mu_);
  int64_t generation_ MEGA_GUARDED_BY(mu_) = 0;
  std::map<RankKey, Telling> tellings_ MEGA_GUARDED_BY(mu_);  // of exits told by this incarnation
  std::map<RankKey, std::string> ready_ MEGA_GUARDED_BY(mu_);
  Owed owed_ MEGA_GUARDED_BY(mu_);
  size_t owed_bytes_ MEGA_GUARDED_BY(mu_) = 0;
};

}  // namespace mega::daemon
