// /metrics of the coordinator. A snapshot of all series is made once a second; a scrape copies it
// and computes nothing. A job's series go a minute after it ends.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "coordinator/service/read_model.h"
#include "coordinator/service/series.h"
#include "mega/v1/telemetry.pb.h"
#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"

namespace mega::service {

class Exporter : public prometheus::Collectable {
 public:
  // Numbers only the process knows, asked for at each snapshot.
  struct Sources {
    std::function<int64_t()> sessions;
    std::function<int64_t()> dropped_reports;
    absl::Time certificate_expiry = absl::InfiniteFuture();  // of plain text never
  };
  Exporter(const ReadModel& reads, const Clock& clock, Sources sources);
  ~Exporter() override;

  // From any thread.
  void AddStep(const v1::StepReport& report);
  void AddEvent(const v1::JobEvent& event);
  void AddCommit(double seconds) { wal_sync_.Add(seconds); }
  void AddLag(double seconds) { loop_lag_.Add(seconds); }

  // Makes the snapshot that scrapes get from now on.
  void Refresh();
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  // Buckets from 100 µs to 60 s, roughly ×3.
  class Histogram {
   public:
    void Add(double seconds);
    prometheus::ClientMetric Sample() const;

   private:
    static constexpr std::array<double, 12> kBounds = {0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03,
                                                       0.1,    0.3,    1,     3,     10,   60};
    mutable Mutex mu_;
    std::array<uint64_t, kBounds.size() + 1> counts_ MEGA_GUARDED_BY(mu_) = {};
    double sum_ MEGA_GUARDED_BY(mu_) = 0;
  };
  // What step reports say of a job.
  struct JobSteps {
    v1::StepReport newest;
    double tokens = 0;
    bool has_validation_loss = false;
    double validation_loss = 0;
  };
  class Snapshot;
  void AddJobs(Snapshot& snapshot, absl::Time now);
  void AddJob(Snapshot& snapshot, const v1::Job& job, absl::Time now);
  void AddNodes(Snapshot& snapshot, absl::Time now) const;

  const ReadModel& reads_;
  const Clock& clock_;
  const Sources sources_;
  Histogram wal_sync_;
  Histogram loop_lag_;

  mutable Mutex mu_;
  std::map<core::JobUid, JobSteps> steps_ MEGA_GUARDED_BY(mu_);
  std::map<core::JobUid, int64_t> failed_saves_ MEGA_GUARDED_BY(mu_);
  std::shared_ptr<const std::vector<prometheus::MetricFamily>> snapshot_ MEGA_GUARDED_BY(mu_);
  // Of Refresh alone: bytes of the checkpoints seen, by job.
  struct CheckpointsSeen {
    int64_t last_step = 0;
    double bytes = 0;
  };
  std::map<core::JobUid, CheckpointsSeen> checkpoints_;
};

}  // namespace mega::service
