// A machine: its clock, its disk, one worker process (the real lease core inside) and the engines.
// Engines outlive their worker by up to a second, and end by themselves at the end of the lease.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "mega/v1/worker.pb.h"
#include "tests/sim/network.h"
#include "worker/daemon/lease/lease.h"

namespace mega::sim {

class Invariants;

using RankKey = std::tuple<std::string, int64_t, int64_t, int64_t>;  // job, attempt, epoch, rank

struct Engine : std::enable_shared_from_this<Engine> {
  v1::RankRef ref;
  Machine* machine = nullptr;
  int64_t device = 0;
  v1::StartRanks order;
  bool is_alive = true;
  bool is_ready = false;
  bool is_connected = false;
  bool is_finished = false;  // ended well
  bool is_stuck = false;     // alive, and never takes another step
  bool is_dying = false;     // killed, executes no more, and the kernel still holds its device
  int64_t step = 0;
  int64_t collective = 0;    // newest that it joined; one a step
  bool is_told = true;       // and so the worker has told the coordinator
  absl::Duration lease_end;  // boot time, as the worker pushed it
};
using EnginePtr = std::shared_ptr<Engine>;

class Machine {
 public:
  struct Options {
    std::string name;
    std::string address;  // of this machine alone, and of its state folder
    std::string rack;
    int64_t devices = 2;
    double clock_rate = 1;  // of CLOCK_BOOTTIME against true time
    lease::Options lease;
    double crash_chance = 0;           // of the worker, at each boundary of taking a command
    double permanent_exit_chance = 0;  // an engine that fails asks not to be started again
    int64_t checkpoint_interval = 5;
  };
  Machine(World& world, Network& network, Coordinator& coordinator, Invariants& invariants,
          Options options);

  const std::string& name() const { return options_.name; }
  const std::string& address() const { return options_.address; }
  const std::string& rack() const { return options_.rack; }
  // The network holds what is sent from here to the coordinator, or back, until then.
  absl::Duration up_held_until, down_held_until;

  absl::Duration worker_paused_until() const { return worker_paused_until_; }

  // Faults.
  void Boot();
  void StartWorker();
  void KillWorker(absl::Duration back_after);   // SIGKILL
  void LeaveWorker(absl::Duration back_after);  // SIGTERM: ranks end, goodbye
  void Reboot(absl::Duration down_for);
  void PauseWorker(absl::Duration span);   // SIGSTOP of the worker only
  void PauseMachine(absl::Duration span);  // everything stands still, the clock does not
  void Retire();                           // power off, for good
  void KillEngine();                       // one of them, by chance
  void StickEngine();                      // likewise
  void ResetConnection();
  void SayOldSavesFailed();             // of ranks that have ended
  void DieSlowly(absl::Duration span);  // what is killed in that time is gone only at its end
  void RefuseRemovals(absl::Duration span);
  void Heal();

  // From the network.
  void OnMessage(const ConnectionPtr& connection, const v1::CoordinatorMessage& message);
  void OnClosed(const ConnectionPtr& connection);
  // From other machines.
  void OnQuery(const std::string& from, int64_t round, int64_t asker_life);
  void OnAnswer(int64_t worker_life, const lease::Answered& answer, const std::string& witness);
  void OnRelayRequest(const std::string& from, v1::RelayedHeartbeat heartbeat);
  void OnRelayedLease(const v1::RelayedLease& lease);

  bool IsFrozen() const;                       // nothing on it executes now
  std::vector<EnginePtr> LiveEngines() const;  // not those that are dying

 private:
  absl::Duration Boottime() const;
  absl::Duration TrueTimeOf(absl::Duration boottime) const;

  void Wake();

  // Worker process.
  void Work(absl::Duration span, std::function<void()> what);  // later, in this worker's life
  void Connect();
  void SayHello();
  void Lease(const lease::Input& input);
  void AskWitnesses(int64_t round);
  void ScheduleTick(absl::Duration boottime);
  bool Join(const std::string& cluster_id);  // false: ranks of another run here
  void OnCommand(const v1::Command& command);
  void Accept(const v1::Command& command);
  void StartRanks(const v1::StartRanks& start);
  void StopRanks(const v1::StopRanks& stop);
  void TakeBack(const v1::CheckpointRejected& rejected);
  void Send(v1::WorkerMessage message);
  void DropSession(bool silently = false);
  bool MaybeCrash();
  void EndWorker();

  // Engines.
  void Run(const EnginePtr& engine, absl::Duration span, std::function<void()> what);
  void MakeReady(const EnginePtr& engine);
  void TakeStep(const EnginePtr& engine);
  void Save(const EnginePtr& engine);
  void Report(const EnginePtr& engine);
  void TellProgress(Engine& engine);
  void WatchLease(const EnginePtr& engine);
  void End(const EnginePtr& engine, int code, int signal, bool killed_by_worker);
  void Reap(const EnginePtr& engine, int code, int signal, bool killed_by_worker);

  World& world_;
  Network& network_;
  Coordinator& coordinator_;
  Invariants& invariants_;
  Options options_;

  // Machine.
  bool is_up_ = false;
  bool is_retired_ = false;
  int64_t boot_ = 0;
  absl::Duration boot_time_;  // true time of the boot
  absl::Duration machine_paused_until_;
  absl::Duration deaths_held_until_;
  absl::Duration removals_held_until_;
  std::map<RankKey, EnginePtr> engines_;  // processes that live, or are dying

  // Disk.
  int64_t incarnation_ = 0;
  int64_t last_command_seq_ = 0;
  std::string cluster_id_;
  std::map<RankKey, v1::RankExited> exited_;

  // Worker process.
  bool has_worker_ = false;
  int64_t worker_life_ = 0;
  absl::Duration worker_paused_until_;
  lease::State lease_;
  int64_t tick_ = 0;  // newest scheduled; earlier ones are void
  std::map<std::tuple<std::string, int64_t, int64_t>, std::string> relays_;  // → who asked
  ConnectionPtr connection_;
  std::map<std::pair<RankKey, int64_t>, v1::CheckpointPart> parts_;  // kept until committed
};

}  // namespace mega::sim
