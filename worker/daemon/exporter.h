// /metrics of this worker. The one table of its series is in exporter.cc; values are set as things
// happen, and a scrape only reads them. Series of a rank vanish when it ends.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <map>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "base/listen_address.h"
#include "base/metrics/metrics_server.h"
#include "base/mutex.h"
#include "base/status.h"
#include "mega/v1/cluster.pb.h"
#include "mega/v1/telemetry.pb.h"
#include "worker/daemon/node_probe.h"
#include "worker/daemon/rank_key.h"

namespace mega::daemon {

class Exporter {
 public:
  // What the daemon samples every second.
  struct Sample {
    bool connected = false;
    double lease_remaining_seconds = 0;
    int64_t devices = 0;
    int64_t devices_in_use = 0;
    int64_t unkillable_ranks = 0;
    int64_t waiting_removals = 0;
    int64_t captured_log_bytes = 0;
    int64_t lost_log_bytes = 0;
    int64_t dropped_reports = 0;
  };
  // Why a rank ended, as a label.
  enum class Cause { kClean, kError, kSignal, kStopped };

  // `certificate_expiry`: of plain text never.
  explicit Exporter(const std::string& node,
                    absl::Time certificate_expiry = absl::InfiniteFuture());
  absl::Status Serve(const ListenAddress& listen);

  // Where others reach it; empty: nowhere.
  std::string address() const;

  void Set(const Sample& sample);
  void Set(const NodeSample& sample);
  // Of all checks by name: what was found, if anything.
  void Set(const std::vector<std::string>& checks, const std::vector<v1::Finding>& findings);
  void RankStarted(const RankKey& key, const std::string& job_name);
  void Report(const RankKey& key, const v1::StepReport& report);
  void RankEnded(const RankKey& key, Cause cause);

 private:
  using Gauges = prometheus::Family<prometheus::Gauge>;
  using Counters = prometheus::Family<prometheus::Counter>;
  struct RankSeries {
    prometheus::Gauge* info = nullptr;
    prometheus::Gauge* step = nullptr;  // the others appear with the first report
    prometheus::Gauge* step_seconds = nullptr;
    prometheus::Gauge* memory_bytes = nullptr;
    prometheus::Labels labels;
  };

  void Remove(std::map<RankKey, RankSeries>::iterator it) MEGA_REQUIRES(mu_);
  Gauges& AddGauges(const char* name, const char* help);
  Counters& AddCounters(const char* name, const char* help);

  const std::string node_;
  std::shared_ptr<prometheus::Registry> registry_;
  Gauges &connected_, &lease_remaining_, &devices_, &unkillable_, &waiting_removals_;
  Counters &log_bytes_, &lost_log_bytes_, &dropped_reports_, &rank_exits_;
  Gauges &rank_info_, &rank_step_, &rank_step_seconds_, &rank_memory_bytes_;
  Gauges &node_load_, &node_memory_, &node_disk_, &node_check_;
  Counters& node_cpu_;

  Mutex mu_;
  std::map<RankKey, RankSeries> ranks_ MEGA_GUARDED_BY(mu_);
  std::unique_ptr<MetricsServer> server_;
};

}  // namespace mega::daemon
