// What this worker owes its coordinator: which ranks run, which have ended, what was said and not
// yet heard. A new session starts from it, and so does the next incarnation. Thread-safe; the locks
// are short, because the session's thread reads it.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/mutex.h"
#include "mega/v1/worker.pb.h"
#include "worker/daemon/rank_key.h"

namespace mega::daemon {

class Ledger {
 public:
  // `record` of the last incarnation, its ranks already turned into exits.
  explicit Ledger(v1::WorkerRecord record)
      : record_(std::move(record)), durable_seq_(record_.last_command_seq()) {}

  // False when the command was accepted before. Its ranks count as running from here on, so that no
  // hello can deny them.
  bool Accept(const v1::Command& command);
  // Commands up to this one are on disk.
  void SetDurable(int64_t seq);
  int64_t durable_seq() const;
  void SetProcess(const RankKey& key, int64_t pid, int64_t start_time_ticks);
  void Ready(const RankKey& key, const std::string& address);
  void Connected(const std::string& job_uid, int64_t epoch);  // the coordinator knows all addresses
  // A checkpoint part, or the failure of one; owed until the commit or the end of the rank.
  void Owe(const RankKey& key, int64_t step, const v1::WorkerMessage& message);
  void Committed(const std::string& job_uid, int64_t epoch, int64_t step);
  // The rank has ended; sent to the coordinator at `now`.
  void Exited(const RankKey& key, const v1::ExitStatus& exit, absl::Duration now);
  // The coordinator has all that was sent before `sent`.
  void Heard(absl::Duration sent);

  // Hello first, then what is owed. Exits count as sent at `now`.
  std::vector<v1::WorkerMessage> Introduce(const v1::Node& node, absl::Duration now);
  v1::WorkerRecord Record() const;

 private:
  static constexpr int kMaxExits = 256;              // oldest are forgotten beyond
  static constexpr size_t kMaxHelloTails = 8 << 20;  // bytes of stderr in one hello

  mutable Mutex mu_;
  v1::WorkerRecord record_ MEGA_GUARDED_BY(mu_);
  int64_t durable_seq_ MEGA_GUARDED_BY(mu_);
  std::map<RankKey, absl::Duration> exit_sent_ MEGA_GUARDED_BY(mu_);
  std::map<RankKey, std::string> ready_ MEGA_GUARDED_BY(mu_);
  std::map<std::pair<RankKey, int64_t>, v1::WorkerMessage> owed_ MEGA_GUARDED_BY(mu_);
};

}  // namespace mega::daemon
