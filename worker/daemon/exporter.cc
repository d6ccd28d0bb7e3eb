#include "worker/daemon/exporter.h"

#include <algorithm>

#include "base/tls/expiry_notice.h"
#include "base/version.h"

namespace mega::daemon {
namespace {

const char* Name(Exporter::Cause cause) {
  switch (cause) {
    case Exporter::Cause::kClean:
      return "clean";
    case Exporter::Cause::kError:
      return "error";
    case Exporter::Cause::kSignal:
      return "signal";
    case Exporter::Cause::kStopped:
      return "stopped";
  }
  return "error";
}

// Counters of the library only rise by a difference.
void RaiseTo(prometheus::Counter& counter, double value) {
  counter.Increment(std::max(0.0, value - counter.Value()));
}

}  // namespace

Exporter::Gauges& Exporter::AddGauges(const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(*registry_);
}
Exporter::Counters& Exporter::AddCounters(const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(*registry_);
}

Exporter::Exporter(const std::string& node, absl::Time certificate_expiry)
    : node_(node),
      registry_(std::make_shared<prometheus::Registry>()),
      connected_(
          AddGauges("mega_session_connected",
                    "1 while this worker is in session with its coordinator. At 0 for longer "
                    "than a lease its ranks are killed: see whether the coordinator runs and "
                    "can be reached from this node.")),
      lease_remaining_(
          AddGauges("mega_lease_remaining_seconds",
                    "Time until the ranks of this node must end unless the coordinator "
                    "renews. Falling steadily means that heartbeats are not answered.")),
      devices_(AddGauges("mega_worker_devices",
                         "Devices of this node by state: in_use or free. Free devices beside a "
                         "waiting job mean that the job needs more than one node has.")),
      unkillable_(AddGauges("mega_worker_unkillable_ranks",
                            "Ranks that outlive SIGKILL, mostly in a hung driver or file system. "
                            "Above 0 the node needs a reboot before its devices come back.")),
      waiting_removals_(
          AddGauges("mega_worker_checkpoints_to_remove",
                    "Checkpoints that the job keeps no longer and that are still on the disk. "
                    "Above 0 for minutes, the disk refuses: the worker's log says which and why.")),
      log_bytes_(
          AddCounters("mega_log_bytes_total",
                      "Bytes that ranks of this node wrote to stdout and stderr. A steep rise "
                      "is a rank that logs in a loop.")),
      lost_log_bytes_(
          AddCounters("mega_log_bytes_lost_total",
                      "Bytes of these that no log has, since it could not be written. Above 0 the "
                      "disk with the worker's state folder is full or failing.")),
      dropped_reports_(AddCounters("mega_worker_step_reports_dropped_total",
                                   "Step reports given up because the coordinator was away for too "
                                   "long. Charts have gaps there; training is not affected.")),
      rank_exits_(
          AddCounters("mega_rank_exits_total",
                      "Ranks of this node that ended, by cause: clean, error, signal or "
                      "stopped (by the worker). Errors and signals on one node only hint at "
                      "that node: read `megactl describe` of the job.")),
      rank_info_(
          AddGauges("mega_rank_info",
                    "1 for each rank that runs on this node; join on training_job and rank to "
                    "learn a rank's node.")),
      rank_step_(AddGauges("mega_rank_step",
                           "Newest optimizer step of the rank. A rank behind the others is the one "
                           "they wait for.")),
      rank_step_seconds_(AddGauges("mega_rank_step_seconds",
                                   "Duration of the rank's newest step. One rank well above the "
                                   "median is a straggler: look at its node.")),
      rank_memory_bytes_(
          AddGauges("mega_rank_memory_bytes",
                    "Peak of the rank's tensor pool. Near the device's memory, lower "
                    "micro_batch_size or shard more.")),
      node_load_(
          AddGauges("mega_node_load_average",
                    "Runnable processes, one-minute average. Above the number of cores, ranks "
                    "and something else compete.")),
      node_memory_(AddGauges("mega_node_memory_bytes",
                             "Memory of the node by state: total or available. Little available "
                             "means that the kernel will soon kill a rank.")),
      node_disk_(AddGauges("mega_node_disk_bytes",
                           "File system of the state folder by state: total or free. When full, "
                           "checkpoints fail and logs are dropped.")),
      node_check_(
          AddGauges("mega_node_check",
                    "What a probe found, by check: 0 nothing, 1 a warning, 2 an error. At 2 "
                    "nothing new is placed here: `megactl nodes -o json` says what it is.")),
      node_cpu_(
          AddCounters("mega_node_cpu_seconds_total",
                      "Time of all cores by mode: busy or idle. Idle cores during a step point "
                      "at waiting: for data or for other ranks.")) {
  AddGauges("mega_worker_info", "1; node and version of this worker as labels.")
      .Add({{"node", node}, {"version", kVersion}})
      .Set(1);
  if (certificate_expiry != absl::InfiniteFuture()) {
    AddGauges(tls::kExpirySeries, tls::kExpiryHelp)
        .Add({})
        .Set(static_cast<double>(absl::ToUnixSeconds(certificate_expiry)));
  }
  for (const Cause cause : {Cause::kClean, Cause::kError, Cause::kSignal, Cause::kStopped}) {
    rank_exits_.Add({{"cause", Name(cause)}});
  }
  Set(Sample{});
}

absl::Status Exporter::Serve(const ListenAddress& listen) {
  MEGA_ASSIGN_OR_RETURN(server_, MetricsServer::Start(listen, registry_));
  return absl::OkStatus();
}

std::string Exporter::address() const {
  if (server_ == nullptr) return "";
  return AdvertisedAddress(server_->address().host, server_->address().port);
}

void Exporter::Set(const Sample& sample) {
  connected_.Add({}).Set(sample.connected ? 1 : 0);
  lease_remaining_.Add({}).Set(sample.lease_remaining_seconds);
  devices_.Add({{"state", "in_use"}}).Set(static_cast<double>(sample.devices_in_use));
  devices_.Add({{"state", "free"}})
      .Set(static_cast<double>(sample.devices - sample.devices_in_use));
  unkillable_.Add({}).Set(static_cast<double>(sample.unkillable_ranks));
  waiting_removals_.Add({}).Set(static_cast<double>(sample.waiting_removals));
  RaiseTo(log_bytes_.Add({}), static_cast<double>(sample.captured_log_bytes));
  RaiseTo(lost_log_bytes_.Add({}), static_cast<double>(sample.lost_log_bytes));
  RaiseTo(dropped_reports_.Add({}), static_cast<double>(sample.dropped_reports));
}

void Exporter::Set(const NodeSample& sample) {
  node_load_.Add({}).Set(sample.load_1m);
  node_memory_.Add({{"state", "total"}}).Set(static_cast<double>(sample.memory_total_bytes));
  node_memory_.Add({{"state", "available"}})
      .Set(static_cast<double>(sample.memory_available_bytes));
  node_disk_.Add({{"state", "total"}}).Set(static_cast<double>(sample.disk_total_bytes));
  node_disk_.Add({{"state", "free"}}).Set(static_cast<double>(sample.disk_free_bytes));
  RaiseTo(node_cpu_.Add({{"mode", "busy"}}), sample.cpu_busy_seconds);
  RaiseTo(node_cpu_.Add({{"mode", "idle"}}), sample.cpu_idle_seconds);
}

void Exporter::Set(const std::vector<std::string>& checks,
                   const std::vector<v1::Finding>& findings) {
  for (const std::string& check : checks) {
    double found = 0;
    for (const v1::Finding& finding : findings) {
      if (finding.check() != check) continue;
      found = finding.severity() == v1::SEVERITY_ERROR ? 2 : 1;
    }
    node_check_.Add({{"check", check}}).Set(found);
  }
}

void Exporter::RankStarted(const RankKey& key, const std::string& job_name) {
  const prometheus::Labels labels = {{"training_job", job_name},
                                     {"rank", fmt::format("{}", key.rank)}};
  MutexLock lock(mu_);
  // A later attempt of the same rank takes the series over: the earlier one must not remove them.
  const auto earlier = std::find_if(ranks_.begin(), ranks_.end(), [&](const auto& entry) {
    return entry.second.labels == labels;
  });
  if (earlier != ranks_.end()) Remove(earlier);
  RankSeries& series = ranks_[key];
  series.labels = labels;
  prometheus::Labels info = labels;
  info["node"] = node_;
  series.info = &rank_info_.Add(info);
  series.info->Set(1);
}

void Exporter::Report(const RankKey& key, const v1::StepReport& report) {
  MutexLock lock(mu_);
  const auto it = ranks_.find(key);
  if (it == ranks_.end()) return;
  RankSeries& series = it->second;
  if (series.step == nullptr) {
    series.step = &rank_step_.Add(series.labels);
    series.step_seconds = &rank_step_seconds_.Add(series.labels);
    series.memory_bytes = &rank_memory_bytes_.Add(series.labels);
  }
  series.step->Set(static_cast<double>(report.step()));
  series.step_seconds->Set(report.step_seconds());
  series.memory_bytes->Set(static_cast<double>(report.memory_bytes()));
}

void Exporter::RankEnded(const RankKey& key, Cause cause) {
  rank_exits_.Add({{"cause", Name(cause)}}).Increment();
  MutexLock lock(mu_);
  const auto it = ranks_.find(key);
  if (it != ranks_.end()) Remove(it);
}

void Exporter::Remove(std::map<RankKey, RankSeries>::iterator it) {
  const RankSeries& series = it->second;
  rank_info_.Remove(series.info);
  if (series.step != nullptr) {
    rank_step_.Remove(series.step);
    rank_step_seconds_.Remove(series.step_seconds);
    rank_memory_bytes_.Remove(series.memory_bytes);
  }
  ranks_.erase(it);
}

}  // namespace mega::daemon
