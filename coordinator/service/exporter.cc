#include "coordinator/service/exporter.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "base/version.h"
#include "coordinator/planner/spec/goodput.h"

namespace mega::service {
namespace {

using Labels = std::vector<prometheus::ClientMetric::Label>;

// A last scrape must still see how a job ended.
constexpr absl::Duration kKeepEnded = absl::Minutes(1);

// "running"
std::string PhaseName(v1::JobPhase phase) {
  std::string name = v1::JobPhase_Name(phase).substr(sizeof("JOB_PHASE_") - 1);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return name;
}

std::string JobLabel(const v1::Job& job) {
  const v1::JobMetadata& metadata = job.metadata();
  return metadata.namespace_() == "default" ? metadata.name()
                                            : metadata.namespace_() + "/" + metadata.name();
}

double SecondsBetween(const google::protobuf::Timestamp& from, absl::Time to) {
  return std::max(0.0, absl::ToDoubleSeconds(to - FromProto(from)));
}

}  // namespace

void Exporter::Histogram::Add(double seconds) {
  const size_t bucket = std::lower_bound(kBounds.begin(), kBounds.end(), seconds) - kBounds.begin();
  MutexLock lock(mu_);
  ++counts_[bucket];
  sum_ += seconds;
}

prometheus::ClientMetric Exporter::Histogram::Sample() const {
  prometheus::ClientMetric metric;
  MutexLock lock(mu_);
  for (size_t i = 0; i < counts_.size(); ++i) {
    metric.histogram.sample_count += counts_[i];
    metric.histogram.bucket.push_back(
        {metric.histogram.sample_count,
         i < kBounds.size() ? kBounds[i] : std::numeric_limits<double>::infinity()});
  }
  metric.histogram.sample_sum = sum_;
  return metric;
}

// Families in the order of the table, filled point by point.
class Exporter::Snapshot {
 public:
  Snapshot() {
    for (const SeriesInfo& info : SeriesTable()) {
      families_.push_back({info.name, info.help, info.type, {}});
    }
  }
  void Add(Series series, double value, Labels labels = {}) {
    prometheus::MetricFamily& family = families_[static_cast<size_t>(series)];
    prometheus::ClientMetric metric;
    metric.label = std::move(labels);
    if (family.type == prometheus::MetricType::Counter) {
      metric.counter.value = value;
    } else {
      metric.gauge.value = value;
    }
    family.metric.push_back(std::move(metric));
  }
  void Add(Series series, prometheus::ClientMetric metric) {
    families_[static_cast<size_t>(series)].metric.push_back(std::move(metric));
  }
  std::vector<prometheus::MetricFamily> Take() {
    std::erase_if(families_, [](const auto& family) { return family.metric.empty(); });
    return std::move(families_);
  }

 private:
  std::vector<prometheus::MetricFamily> families_;
};

Exporter::Exporter(const ReadModel& reads, const Clock& clock, Sources sources)
    : reads_(reads), clock_(clock), sources_(std::move(sources)) {
  Refresh();
}

Exporter::~Exporter() = default;

void Exporter::AddStep(const v1::StepReport& report) {
  MutexLock lock(mu_);
  JobSteps& job = steps_[report.job_uid()];
  const v1::StepReport& last = job.newest;
  const bool goes_on = report.attempt() == last.attempt();
  if (report.attempt() < last.attempt() || (goes_on && report.step() <= last.step())) return;
  const double total = static_cast<double>(report.consumed_tokens());
  job.tokens += goes_on ? std::max(0.0, total - static_cast<double>(last.consumed_tokens()))
                        : total / static_cast<double>(std::max<int64_t>(report.step(), 1));
  if (report.has_validation_loss()) {
    job.has_validation_loss = true;
    job.validation_loss = report.validation_loss();
  }
  job.newest = report;
}

void Exporter::AddEvent(const v1::JobEvent& event) {
  static constexpr std::array<std::string_view, 3> kFailedSave = {
      "CHECKPOINT_FAILED", "CHECKPOINT_REJECTED", "CHECKPOINT_ABANDONED"};
  if (std::ranges::count(kFailedSave, event.reason()) == 0) return;
  MutexLock lock(mu_);
  ++failed_saves_[event.job_uid()];
}

void Exporter::AddJob(Snapshot& snapshot, const v1::Job& job, absl::Time now) {
  const std::string name = JobLabel(job);
  const Labels labels = {{"training_job", name}};
  for (int phase = v1::JOB_PHASE_QUEUED; phase <= v1::JobPhase_MAX; ++phase) {
    snapshot.Add(Series::kJobPhase, job.phase() == phase ? 1 : 0,
                 {{"training_job", name}, {"phase", PhaseName(static_cast<v1::JobPhase>(phase))}});
  }
  snapshot.Add(Series::kRestarts, static_cast<double>(job.restarts()), labels);
  if (job.has_start_time()) {
    snapshot.Add(Series::kSubmitToFirstStep,
                 SecondsBetween(job.create_time(), FromProto(job.start_time())), labels);
  }
  for (int i = job.attempts_size() - 1; i > 0; --i) {
    const v1::Attempt& attempt = job.attempts(i);
    if (!attempt.has_first_step_time() || !job.attempts(i - 1).has_end_time()) continue;
    snapshot.Add(
        Series::kRecovery,
        SecondsBetween(job.attempts(i - 1).end_time(), FromProto(attempt.first_step_time())),
        labels);
    break;
  }
  if (const auto ratio = spec::SumGoodput(job.goodput(), now).Ratio()) {
    snapshot.Add(Series::kJobGoodput, *ratio, labels);
  }
  if (!job.checkpoints().empty()) {
    const v1::Manifest& newest = *job.checkpoints().rbegin();
    snapshot.Add(Series::kCheckpointAge, SecondsBetween(newest.create_time(), now), labels);
    CheckpointsSeen& seen = checkpoints_[job.uid()];
    for (const v1::Manifest& manifest : job.checkpoints()) {
      if (manifest.step() <= seen.last_step) continue;
      seen.last_step = manifest.step();
      seen.bytes += static_cast<double>(manifest.total_bytes());
    }
    snapshot.Add(Series::kCheckpointBytes, seen.bytes, labels);
  } else if (job.has_start_time() && !core::IsTerminal(job.phase())) {
    // All that was trained so far.
    snapshot.Add(Series::kCheckpointAge, SecondsBetween(job.start_time(), now), labels);
  }
  MutexLock lock(mu_);
  const auto failed = failed_saves_.find(job.uid());
  snapshot.Add(Series::kCheckpointFailures,
               failed == failed_saves_.end() ? 0 : static_cast<double>(failed->second), labels);
  const auto it = steps_.find(job.uid());
  if (it == steps_.end()) return;
  const v1::StepReport& newest = it->second.newest;
  snapshot.Add(Series::kJobStep, static_cast<double>(newest.step()), labels);
  snapshot.Add(Series::kStepSeconds, newest.step_seconds(), labels);
  snapshot.Add(Series::kTokens, it->second.tokens, labels);
  snapshot.Add(Series::kTokensPerSecond, newest.tokens_per_s(), labels);
  snapshot.Add(Series::kMfu, newest.mfu(), labels);
  snapshot.Add(Series::kLoss, newest.loss(), labels);
  snapshot.Add(Series::kGradNorm, newest.grad_norm(), labels);
  snapshot.Add(Series::kLearningRate, newest.lr(), labels);
  if (it->second.has_validation_loss) {
    snapshot.Add(Series::kValidationLoss, it->second.validation_loss, labels);
  }
}

void Exporter::AddJobs(Snapshot& snapshot, absl::Time now) {
  // Finished jobs may share a name; only the newest of a name is shown.
  std::map<std::string, std::shared_ptr<const v1::Job>> by_label;
  std::set<core::JobUid> shown;
  double queued = 0;
  for (auto& job : reads_.RecentJobs(now - kKeepEnded)) {
    if (core::IsQueued(*job)) ++queued;
    auto& slot = by_label[JobLabel(*job)];
    if (!slot || FromProto(slot->create_time()) < FromProto(job->create_time())) {
      slot = std::move(job);
    }
  }
  snapshot.Add(Series::kQueueDepth, queued);
  for (const auto& [label, job] : by_label) {
    shown.insert(job->uid());
    AddJob(snapshot, *job, now);
  }
  const auto is_gone = [&](const auto& entry) { return !shown.contains(entry.first); };
  std::erase_if(checkpoints_, is_gone);
  MutexLock lock(mu_);
  std::erase_if(steps_, is_gone);
  std::erase_if(failed_saves_, is_gone);
}

void Exporter::AddNodes(Snapshot& snapshot, absl::Time now) const {
  double in_use = 0;
  double idle = 0;
  double lost = 0;
  for (const auto& node : reads_.Nodes()) {
    const auto devices = static_cast<double>(node->devices_size());
    if (node->state() == v1::NODE_STATE_LOST) {
      lost += devices;
    } else {
      in_use += static_cast<double>(node->devices_in_use());
      idle += devices - static_cast<double>(node->devices_in_use());
    }
    if (node->has_last_heartbeat()) {
      snapshot.Add(Series::kHeartbeatAge, SecondsBetween(node->last_heartbeat(), now),
                   {{"node", node->name()}});
    }
  }
  snapshot.Add(Series::kDevices, in_use, {{"state", "allocated"}});
  snapshot.Add(Series::kDevices, idle, {{"state", "idle"}});
  snapshot.Add(Series::kDevices, lost, {{"state", "lost"}});
}

void Exporter::Refresh() {
  const absl::Time now = clock_.WallNow();
  Snapshot snapshot;
  snapshot.Add(Series::kCoordinatorInfo, 1, {{"version", kVersion}});
  if (sources_.certificate_expiry != absl::InfiniteFuture()) {
    snapshot.Add(Series::kCertificateExpiry,
                 static_cast<double>(absl::ToUnixSeconds(sources_.certificate_expiry)));
  }
  AddJobs(snapshot, now);
  AddNodes(snapshot, now);
  snapshot.Add(Series::kWorkerSessions, static_cast<double>(sources_.sessions()));
  snapshot.Add(Series::kStepReportsDropped, static_cast<double>(sources_.dropped_reports()));
  snapshot.Add(Series::kWalSync, wal_sync_.Sample());
  snapshot.Add(Series::kLoopLag, loop_lag_.Sample());
  auto made = std::make_shared<const std::vector<prometheus::MetricFamily>>(snapshot.Take());
  MutexLock lock(mu_);
  snapshot_ = std::move(made);
}

std::vector<prometheus::MetricFamily> Exporter::Collect() const {
  std::shared_ptr<const std::vector<prometheus::MetricFamily>> snapshot;
  {
    MutexLock lock(mu_);
    snapshot = snapshot_;
  }
  return *snapshot;
}

}  // namespace mega::service
