// One worker: puts the parts together and carries out the coordinator's commands.
// Threads: the loop owns the ranks; the session's thread owns session and lease and never waits for
// the loop; supervisor, log capture, reports and gRPC have their own and post to the loop.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/listen_address.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/tls/expiry_notice.h"
#include "base/unique_fd.h"
#include "worker/daemon/cgroup.h"
#include "worker/daemon/engine_version.h"
#include "worker/daemon/event_loop.h"
#include "worker/daemon/exporter.h"
#include "worker/daemon/ledger.h"
#include "worker/daemon/log_capture.h"
#include "worker/daemon/log_keeper.h"
#include "worker/daemon/log_streams.h"
#include "worker/daemon/probes/probes.h"
#include "worker/daemon/progress_table.h"
#include "worker/daemon/ranks.h"
#include "worker/daemon/removals.h"
#include "worker/daemon/reports.h"
#include "worker/daemon/session.h"
#include "worker/daemon/state_dir.h"
#include "worker/daemon/supervisor.h"
#include "worker/daemon/trainer_service.h"
#include "worker/daemon/witness_client.h"
#include "worker/daemon/witness_service.h"

namespace mega::daemon {

class Daemon {
 public:
  struct Options {
    std::string coordinator;                        // host:port
    std::shared_ptr<const tls::Identity> identity;  // null: plain text
    std::string node;
    std::string state_dir;
    int64_t devices = 0;  // 0: one for each core
    std::string listen = "127.0.0.1:0";
    std::string metrics_listen = "127.0.0.1:0";  // empty: no metrics
    std::string engine;                          // path of mega-engine
    std::vector<std::string> probe;  // program of the probes (probes/); empty: none are made
    std::map<std::string, std::string> labels;
    absl::Duration grace = absl::Seconds(10);  // for ranks when this worker leaves
    lease::Options lease;
    RankLog::Options log;
    LogLimits kept_logs;                            // of all jobs
    absl::Duration logs_listed = absl::Minutes(1);  // how often that is looked after
  };

  static absl::StatusOr<std::unique_ptr<Daemon>> Start(Options options, const Clock& clock);
  ~Daemon();  // kills what still runs

  const std::string& address() const { return node_.address(); }
  const std::string& metrics_address() const { return node_.metrics_address(); }

  // Readable once the worker cannot go on; `fatal` says why.
  int fatal_fd() const { return fatal_event_.get(); }
  absl::Status fatal() const;

  // This worker's number: larger than that of every worker before it that used the same state
  // folder, whatever the clock did meanwhile; the time of the start where the folder is new. (A
  // folder lost together with a clock set back gives a lower one: the coordinator then refuses this
  // worker until it counts the node as lost.)
  int64_t incarnation() const { return node_.incarnation(); }

  // Ends the ranks (SIGTERM, SIGKILL after the grace) and starts no others.
  void BeginShutdown(const std::string& reason);
  void KillRanks() { supervisor_->KillAll(); }
  // All ranks have ended and were reported.
  bool WaitDrained(absl::Duration wait);
  void Goodbye(const std::string& reason) { session_->Goodbye(reason, absl::Seconds(2)); }

 private:
  Daemon(Options options, const Clock& clock)
      : options_(std::move(options)), clock_(clock), expiry_(options_.identity) {}

  absl::Status Init();
  absl::Status TakeOverState(const EngineVersion& engine);
  void BuildParts(const ListenAddress& listen);
  absl::Status ServeWitness(const ListenAddress& listen);
  Session::Callbacks SessionCallbacks();
  absl::StatusOr<bool> Join(const std::string& cluster_id);  // on the session's thread
  TrainerService::Callbacks TrainerCallbacks();

  // On the loop.
  void HandleCommand(v1::Command command, int64_t generation, int64_t hello);
  bool Passes(const v1::Command& command, int64_t hello);
  void Ack(const v1::Command& command);
  bool KeepRemovals();
  void FlushSoon();
  void FlushCommands();
  void WithdrawStarts(const v1::StopRanks& order);
  void CarryOut(const v1::Command& command);
  void StreamLog(const v1::StreamLog& request);
  absl::Status Persist();
  void Sample();
  void RetryLeftovers();
  void RetryLeftoversLater();
  void CheckDrained();
  void ProbeNodeLater();  // on the chores
  void StartProbes();
  void ListLogsLater();  // on the chores
  void PruneLogs(std::vector<JobLogs> logs);

  struct Passed {  // the start of an attempt; both empty: another command
    std::string job_uid;
    int64_t epoch = 0;
    bool operator==(const Passed&) const = default;
  };

  const Options options_;
  const Clock& clock_;
  v1::Node node_;
  std::unique_ptr<StateDir> state_dir_;
  std::vector<v1::Device> devices_;
  std::unique_ptr<Ledger> ledger_;
  std::unique_ptr<CgroupParent> cgroups_;
  UniqueFd fatal_event_;

  EventLoop loop_;
  EventLoop chores_;  // what may hang on a disk
  std::unique_ptr<Exporter> exporter_;
  std::unique_ptr<Reports> reports_;
  std::unique_ptr<ProgressTable> progress_;
  std::unique_ptr<Probes> probes_;  // null: none
  std::unique_ptr<LogStreams> log_streams_;
  std::unique_ptr<LogCapture> capture_;
  std::unique_ptr<Supervisor> supervisor_;
  std::unique_ptr<TrainerService> trainer_;
  std::unique_ptr<WitnessClient> witness_client_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<WitnessService> witness_;
  std::unique_ptr<Ranks> ranks_;        // the loop's
  std::unique_ptr<Removals> removals_;  // likewise
  std::unique_ptr<GrpcServer> server_;

  int64_t hello_ = 0;  // the session thread's: number of the newest

  // The loop's.
  tls::ExpiryNotice expiry_;
  int64_t passed_after_ = 0;          // the hello of the session of
  std::vector<Passed> passed_;        // commands that are to come again
  std::deque<v1::Command> commands_;  // accepted, not yet durable
  bool is_flush_posted_ = false;
  bool retrying_ = false;
  v1::WorkerRecord stuck_;  // ranks of an earlier incarnation that do not die

  mutable Mutex mu_;
  CondVar changed_;
  absl::Status fatal_ MEGA_GUARDED_BY(mu_);
  bool drained_ MEGA_GUARDED_BY(mu_) = false;
};

}  // namespace mega::daemon
