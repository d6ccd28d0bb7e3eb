// The ranks of this node, from the order to start to the report of their end. All methods run on
// the loop; what happens elsewhere (process ended, engine spoke) is posted to it.
//
// A rank's end is told to the coordinator when three things are known — the process was reaped, its
// stream and its pipes are at their end — or a moment after the first of them; and not before its
// step reports have arrived, so that the last step of a job is never overtaken by its success.
// A rank whose pid is not on disk is never let go: it ends with the reason.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status.h"
#include "mega/v1/trainer.pb.h"
#include "mega/v1/worker.pb.h"
#include "worker/daemon/event_loop.h"
#include "worker/daemon/exporter.h"
#include "worker/daemon/ledger.h"
#include "worker/daemon/log_capture.h"
#include "worker/daemon/process.h"
#include "worker/daemon/rank_key.h"
#include "worker/daemon/rank_log.h"
#include "worker/daemon/reports.h"
#include "worker/daemon/state_dir.h"
#include "worker/daemon/supervisor.h"
#include "worker/daemon/trainer_service.h"

namespace mega::daemon {

class Ranks {
 public:
  struct Parts {
    EventLoop& loop;
    const Clock& clock;
    const StateDir& state_dir;
    Ledger& ledger;
    Supervisor& supervisor;
    TrainerService& trainer;
    LogCapture& capture;
    Reports& reports;
    Exporter& exporter;
    std::function<void(v1::WorkerMessage)> send;  // to the coordinator, if in session
    std::function<bool()> may_run;
    std::function<bool()> connected;
    std::function<absl::Status()> persist;  // the ledger; OK once it is on disk. Logs failures.
  };
  struct Options {
    std::string engine;
    std::string listen_host;  // of this worker, for other workers
    std::vector<v1::Device> devices;
    RankLog::Options log;
  };

  Ranks(Options options, Parts parts) : options_(std::move(options)), parts_(std::move(parts)) {}

  void Start(const v1::StartRanks& order);
  void Connect(const v1::ConnectRanks& order);
  void Stop(const v1::StopRanks& order);
  void Save(const v1::SaveCheckpoint& order);
  // Instead of Start: its ranks end at once, because of `reason`, and are never started.
  void Withdraw(const v1::StartRanks& order, const std::string& reason);
  void StopAll(absl::Duration grace, const std::string& reason);  // and refuses new ones
  void Committed(const v1::CheckpointCommitted& commit);
  void Rejected(const v1::CheckpointRejected& rejected);

  void OnEngineMessage(const RankKey& key, v1::EngineMessage message);
  void OnDetached(const RankKey& key);
  void OnRefused(const RankKey& key, const absl::Status& why);
  void OnProcessExit(const RankKey& key, ProcessExit exit, bool by_worker);
  void OnLogEnd(const RankKey& key);

  bool empty() const { return ranks_.empty(); }
  int64_t devices_in_use() const;
  std::set<std::string> Jobs() const;  // uids of those with a rank here
  // Of a rank that runs here; null otherwise.
  std::shared_ptr<RankLog> FindLog(const std::string& job_uid, int64_t attempt, int64_t rank) const;

 private:
  struct Rank {
    int64_t device = -1;
    std::shared_ptr<RankLog> log;
    bool attached = false;
    bool log_ended = false;
    std::optional<v1::Finished> finished;
    absl::Status failure;     // why it was not started, or may not run
    std::string stop_reason;  // of the worker
    std::optional<ProcessExit> exit;
    bool by_worker = false;
    bool complete = false;  // nothing more will be learnt of its end
    absl::Duration exited_at;
  };

  absl::Status StartOne(const v1::StartRanks& order, const RankKey& key, Rank& rank);
  absl::Status TakeDevice(const v1::StartRanks& order, const RankKey& key, Rank& rank) const;
  void Owe(const RankKey& key, int64_t step, const v1::WorkerMessage& message);
  void EndWithoutProcess(const RankKey& key, const absl::Status& why);
  void CheckEnd(const RankKey& key);
  void ReportEnds();
  v1::ExitStatus Describe(const Rank& rank) const;
  void PruneLogs(const std::string& run_directory, int64_t attempt) const;

  const Options options_;
  const Parts parts_;
  std::map<RankKey, Rank> ranks_;
  std::string refusing_;    // why no rank is started any more
  bool reporting_ = false;  // ReportEnds is posted
  int given_up_ = 0;        // parts of checkpoints, since that was told
  absl::Duration told_given_up_ = -absl::InfiniteDuration();
};

}  // namespace mega::daemon
