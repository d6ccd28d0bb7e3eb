#include "coordinator/service/series.h"

#include "base/tls/expiry_notice.h"

namespace mega::service {

const std::array<SeriesInfo, static_cast<size_t>(Series::kCount)>& SeriesTable() {
  using enum prometheus::MetricType;
  static const std::array<SeriesInfo, static_cast<size_t>(Series::kCount)> table = {{
      {Series::kCoordinatorInfo, "mega_coordinator_info", Gauge,
       "1, with the release as a label. Several releases at once: finish the roll-out."},
      {Series::kCertificateExpiry, tls::kExpirySeries, Gauge, tls::kExpiryHelp},
      {Series::kJobPhase, "mega_job_phase", Gauge,
       "1 for the phase a job is in, 0 for the others. Long in starting or recovering: megactl "
       "describe JOB."},
      {Series::kQueueDepth, "mega_queue_depth", Gauge,
       "Jobs that wait for devices. High: add workers, or look at the reason of the first one."},
      {Series::kDevices, "mega_devices", Gauge,
       "Devices by state. lost above 0: megactl nodes, then that worker's log."},
      {Series::kWorkerSessions, "mega_worker_sessions", Gauge,
       "Workers in session. Below the number of nodes: some cannot reach the coordinator."},
      {Series::kHeartbeatAge, "mega_heartbeat_age_seconds", Gauge,
       "Since a node's last heartbeat. Above 3: the node or its network is slow; at 11 its ranks "
       "are given up, if most of its witnesses are in session, else after the outage grace."},
      {Series::kSubmitToFirstStep, "mega_submit_to_first_step_seconds", Gauge,
       "From submit to the first step, waiting in the queue included. High without a queue: look "
       "at data and checkpoint loading in the ranks' logs."},
      {Series::kRestarts, "mega_restarts_total", Counter,
       "Restarts of a job. Rising: megactl describe JOB names the first rank that failed each "
       "time."},
      {Series::kRecovery, "mega_recovery_seconds", Gauge,
       "Newest recovery: from the end of the failed attempt to the first step of the next. High: "
       "the checkpoint is large or its disk slow."},
      {Series::kJobGoodput, "mega_job_goodput_ratio", Gauge,
       "Of the device-seconds that a job has held, the share that went into steps made for the "
       "first time. Low: megactl goodput JOB names where the rest went."},
      {Series::kJobStep, "mega_job_step", Gauge,
       "Newest step of a job. Not rising while it runs: megactl logs JOB."},
      {Series::kStepSeconds, "mega_step_seconds", Gauge,
       "Newest step's duration. Risen: compare the ranks' mega_rank_step_seconds for a "
       "straggler."},
      {Series::kTokens, "mega_tokens_total", Counter,
       "Tokens trained, steps done again after a recovery included. Flat while the job runs: it "
       "hangs."},
      {Series::kTokensPerSecond, "mega_tokens_per_second", Gauge,
       "Throughput of the whole job. Fallen: compare step time of the ranks."},
      {Series::kMfu, "mega_mfu_ratio", Gauge,
       "Model FLOPs over the devices' measured peak. Low: larger micro-batches, or fewer ranks "
       "on a core."},
      {Series::kLoss, "mega_loss", Gauge,
       "Training loss in nats per token. Rising or not a number: lower optimizer.lr, or resume "
       "from an earlier checkpoint."},
      {Series::kGradNorm, "mega_grad_norm", Gauge,
       "Global gradient norm before clipping. Spikes: look at the data of that step, lower "
       "optimizer.lr."},
      {Series::kLearningRate, "mega_learning_rate", Gauge, "Learning rate of the newest step."},
      {Series::kValidationLoss, "mega_validation_loss", Gauge,
       "Newest validation loss in nats per token. Rising while the loss falls: the model learns "
       "the data by heart."},
      {Series::kCheckpointAge, "mega_checkpoint_age_seconds", Gauge,
       "Since the newest complete checkpoint, or the first step of a job that has none: what a "
       "failure now would cost. High: lower "
       "checkpoint.interval_steps, or see whether saving fails (megactl events JOB)."},
      {Series::kCheckpointBytes, "mega_checkpoint_bytes_total", Counter,
       "Bytes of complete checkpoints written since the coordinator started."},
      {Series::kCheckpointFailures, "mega_checkpoint_failures_total", Counter,
       "Saves that a rank could not write, or that did not become a checkpoint, since the "
       "coordinator started. Rising: megactl events JOB says why."},
      {Series::kStepReportsDropped, "mega_step_reports_dropped_total", Counter,
       "Step reports not kept because the disk was too slow. Above 0: a faster disk for "
       "--state-dir."},
      {Series::kWalSync, "mega_rocksdb_wal_sync_seconds", Histogram,
       "Time of one synced commit. High: --state-dir lies on a slow or busy disk."},
      {Series::kLoopLag, "mega_event_loop_lag_seconds", Histogram,
       "From the arrival of an input to its turn. Above 0.05: the coordinator needs a core of its "
       "own."},
  }};
  return table;
}

}  // namespace mega::service
