// How a worker looks after itself and its node: what it samples, probes and tries again.
#include <set>

#include "base/log.h"
#include "worker/daemon/daemon.h"
#include "worker/daemon/leftovers.h"
#include "worker/daemon/node_probe.h"

namespace mega::daemon {
namespace {

constexpr absl::Duration kStuckRetry = absl::Seconds(10);
constexpr absl::Duration kSampleInterval = absl::Seconds(1);
constexpr absl::Duration kProbeInterval = absl::Seconds(5);
// At a time: the loop has other things to do.
constexpr size_t kJobsPruned = 64;

}  // namespace

void Daemon::RetryLeftovers() {
  const bool all_gone =
      KillLeftovers(stuck_, node_.boot_id(), state_dir_->path(), absl::ZeroDuration());
  for (const v1::RankExited& exited : stuck_.exited()) {
    ledger_->Exited(RankKey::From(exited.rank()), exited.exit(), clock_.BootNow());
    v1::WorkerMessage message;
    *message.mutable_rank_exited() = exited;
    session_->Send(std::move(message));
  }
  if (!stuck_.exited().empty()) (void)Persist();
  stuck_.clear_exited();
  if (!all_gone) RetryLeftoversLater();
}

void Daemon::RetryLeftoversLater() {
  loop_.PostAfter(kStuckRetry, [this] { RetryLeftovers(); });
}

void Daemon::Sample() {
  exporter_->Set(Exporter::Sample{
      .connected = session_->connected(),
      .lease_remaining_seconds = absl::ToDoubleSeconds(session_->lease_remaining()),
      .devices = static_cast<int64_t>(devices_.size()),
      .devices_in_use = ranks_->devices_in_use(),
      .unkillable_ranks = supervisor_->unkillable(),
      .waiting_removals = removals_->waiting(),
      .captured_log_bytes = capture_->captured_bytes(),
      .lost_log_bytes = capture_->lost_bytes(),
      .dropped_reports = reports_->dropped()});
  progress_->Flush(clock_.BootNow());
  expiry_.Look(clock_.WallNow());
  loop_.PostAfter(kSampleInterval, [this] { Sample(); });
}

void Daemon::ProbeNodeLater() {
  exporter_->Set(ProbeNode(state_dir_->path()));
  chores_.PostAfter(kProbeInterval, [this] { ProbeNodeLater(); });
}

void Daemon::ListLogsLater() {
  loop_.Post([this, logs = ListLogs(state_dir_->path())]() mutable { PruneLogs(std::move(logs)); });
  chores_.PostAfter(options_.logs_listed, [this] { ListLogsLater(); });
}

// On the loop, so that no rank of such a job starts meanwhile.
void Daemon::PruneLogs(std::vector<JobLogs> logs) {
  std::set<std::string> live = ranks_->Jobs();
  const v1::WorkerRecord record = ledger_->Record();  // with starts that wait for the disk
  for (const v1::RecordedRank& rank : record.ranks()) live.insert(rank.rank().job_uid());
  for (const v1::RecordedRank& rank : stuck_.ranks()) live.insert(rank.rank().job_uid());
  std::vector<JobLogs> beyond = LogsBeyond(std::move(logs), live, options_.kept_logs);
  if (beyond.empty()) return;
  if (beyond.size() > kJobsPruned) beyond.resize(kJobsPruned);
  int64_t bytes = 0;
  for (const JobLogs& job : beyond) bytes += RemoveLogs(state_dir_->path(), job.job_uid);
  log::Info("removed the oldest logs of ended jobs: there were more than are kept",
            {{"jobs", beyond.size()},
             {"bytes", bytes},
             {"kept_bytes", options_.kept_logs.bytes},
             {"kept_jobs", options_.kept_logs.jobs}});
}

void Daemon::StartProbes() {
  if (options_.probe.empty()) return;
  exporter_->Set(Probes::Names(), {});
  probes_ = std::make_unique<Probes>(
      Probes::Options{.program = options_.probe, .inputs = {.paths = {state_dir_->path()}}}, clock_,
      [this](const std::vector<v1::Finding>& findings) {
        exporter_->Set(Probes::Names(), findings);
        v1::WorkerMessage message;
        message.mutable_node_findings();  // also when there are none any more
        for (const v1::Finding& finding : findings) {
          *message.mutable_node_findings()->add_findings() = finding;
        }
        session_->Send(std::move(message));
      });
}

}  // namespace mega::daemon
