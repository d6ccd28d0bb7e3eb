#include "coordinator/service/read_model.h"

#include <algorithm>

#include "base/clock.h"
#include "coordinator/core/jobs/manifest.h"
#include "coordinator/core/queue/quota.h"

namespace mega::service {
namespace {

int64_t CreateNs(const v1::Job& job) { return absl::ToUnixNanos(FromProto(job.create_time())); }

}  // namespace

void ReadModel::Load(const core::State& state) {
  Publication all;
  for (const auto& [uid, job] : state.durable.jobs) {
    all.jobs.push_back(std::make_shared<v1::Job>(core::JobView(state, uid)));
  }
  for (const auto& [uid, events] : state.durable.events) {
    for (const auto& [revision, event] : events) {
      all.events.push_back(std::make_shared<v1::JobEvent>(event));
    }
  }
  for (const auto& [id, node] : state.durable.nodes) {
    all.nodes.push_back(std::make_shared<v1::Node>(core::NodeView(state, id)));
  }
  all.namespaces = core::NamespaceViews(state);
  all.revision = state.durable.meta.revision();
  Publish(all);
  // Release 0.1 kept no mark of what it had deleted: a job with just the most events may have lost
  // some.
  MutexLock lock(mu_);
  for (auto& [uid, entry] : jobs_) {
    if (entry.events_gone > 0 || entry.events.size() < core::kEventsPerJob) continue;
    entry.events_gone = entry.events.begin()->first - 1;
  }
}

void ReadModel::PutJob(std::shared_ptr<const v1::Job> job) {
  const auto [it, is_new] = jobs_.try_emplace(job->uid());
  Entry& entry = it->second;
  if (is_new) {
    by_time_.insert({CreateNs(*job), job->uid()});
    by_name_[job->metadata().name()].insert(job->uid());
  }
  if (core::IsTerminal(job->phase())) {
    if (unfinished_.erase(job->uid()) > 0 || is_new) {
      ended_.insert({FromProto(job->end_time()), job->uid()});
    }
  } else {
    unfinished_.insert(job->uid());
  }
  entry.last_step = std::max(entry.last_step, job->last_step());
  if (entry.last_step == job->last_step()) entry.last_loss = job->last_loss();
  entry.queue_position = job->queue_position();
  entry.job = std::move(job);
}

void ReadModel::DeleteJob(const core::JobUid& uid) {
  const auto it = jobs_.find(uid);
  if (it == jobs_.end()) return;
  if (const v1::Job* job = it->second.job.get()) {
    by_time_.erase({CreateNs(*job), uid});
    ended_.erase({FromProto(job->end_time()), uid});
    unfinished_.erase(uid);
    const auto named = by_name_.find(job->metadata().name());
    named->second.erase(uid);
    if (named->second.empty()) by_name_.erase(named);
  }
  jobs_.erase(it);
}

void ReadModel::Publish(const Publication& publication) {
  std::set<core::JobUid> changed;
  {
    MutexLock lock(mu_);
    for (const auto& job : publication.jobs) {
      PutJob(job);
      changed.insert(job->uid());
    }
    for (const auto& event : publication.events) {
      Entry& entry = jobs_[event->job_uid()];
      entry.events[event->revision()] = event;
      if (entry.events.size() > core::kEventsPerJob) {
        entry.events_gone = entry.events.begin()->first;
        entry.events.erase(entry.events.begin());
      }
      changed.insert(event->job_uid());
    }
    for (const core::JobUid& uid : publication.deleted_jobs) {
      DeleteJob(uid);
      changed.insert(uid);
    }
    for (const auto& node : publication.nodes) nodes_[node->name()] = node;
    for (const std::string& name : publication.deleted_nodes) nodes_.erase(name);
    if (publication.queue) {
      for (const core::JobUid& uid : unfinished_) jobs_[uid].queue_position = 0;
      for (const auto& [uid, position] : *publication.queue) {
        if (auto it = jobs_.find(uid); it != jobs_.end()) it->second.queue_position = position;
      }
    }
    if (publication.namespaces) namespaces_ = *publication.namespaces;
    if (publication.revision != 0) revision_ = publication.revision;
  }
  Changed(changed);
}

void ReadModel::PublishStep(const v1::StepReport& report) {
  {
    MutexLock lock(mu_);
    const auto it = jobs_.find(report.job_uid());
    if (it == jobs_.end()) return;
    Entry& entry = it->second;
    ++entry.steps_published;
    // Workers send again what a broken stream carried; only a later attempt steps back.
    if (report.attempt() > entry.last_attempt || report.step() > entry.last_step) {
      entry.last_attempt = report.attempt();
      entry.last_step = report.step();
      entry.last_loss = report.loss();
    }
  }
  Changed({report.job_uid()});
}

v1::Job ReadModel::View(const Sample& sample) {
  v1::Job job = *sample.job;
  job.set_last_step(sample.last_step);
  job.set_last_loss(sample.last_loss);
  job.set_queue_position(sample.queue_position);
  for (v1::Manifest& manifest : *job.mutable_checkpoints()) core::DropTensors(manifest);
  for (v1::Attempt& attempt : *job.mutable_attempts()) {
    if (attempt.has_load()) core::DropTensors(*attempt.mutable_load());
    for (v1::RankState& rank : *attempt.mutable_ranks()) {
      const bool is_failed = attempt.has_failed_rank() && rank.rank() == attempt.failed_rank();
      if (rank.has_exit() && !is_failed) rank.mutable_exit()->clear_stderr_tail();
    }
  }
  return job;
}

std::optional<v1::Job> ReadModel::Job(const core::JobUid& uid) const {
  Sample sample;
  {
    MutexLock lock(mu_);
    const auto it = jobs_.find(uid);
    if (it == jobs_.end() || !it->second.job) return std::nullopt;
    sample = Take(it->second);
  }
  return View(sample);
}

std::shared_ptr<const v1::Job> ReadModel::JobRecord(const core::JobUid& uid) const {
  MutexLock lock(mu_);
  const auto it = jobs_.find(uid);
  return it == jobs_.end() ? nullptr : it->second.job;
}

std::optional<v1::Node> ReadModel::Node(const std::string& name) const {
  MutexLock lock(mu_);
  const auto it = nodes_.find(name);
  if (it == nodes_.end()) return std::nullopt;
  return *it->second;
}

std::vector<v1::Job> ReadModel::ListJobs(OfNamespace wanted, const JobKey& after,
                                         size_t limit) const {
  std::vector<Sample> samples;
  {
    MutexLock lock(mu_);
    for (auto it = by_time_.upper_bound(after); it != by_time_.end() && samples.size() < limit;
         ++it) {
      const Entry& entry = jobs_.at(it->second);
      if (wanted(entry.job->metadata().namespace_())) samples.push_back(Take(entry));
    }
  }
  std::vector<v1::Job> jobs;
  for (const Sample& sample : samples) {
    v1::Job job = View(sample);
    auto& attempts = *job.mutable_attempts();
    if (!attempts.empty()) attempts.DeleteSubrange(0, attempts.size() - 1);
    for (v1::Attempt& attempt : attempts) {
      attempt.clear_ranks();
      attempt.mutable_plan()->clear_ranks();
    }
    for (v1::Manifest& manifest : *job.mutable_checkpoints()) manifest.clear_files();
    jobs.push_back(std::move(job));
  }
  return jobs;
}

std::vector<v1::Node> ReadModel::ListNodes(const std::string& after, size_t limit) const {
  MutexLock lock(mu_);
  std::vector<v1::Node> nodes;
  for (auto it = nodes_.upper_bound(after); it != nodes_.end() && nodes.size() < limit; ++it) {
    nodes.push_back(*it->second);
  }
  return nodes;
}

ReadModel::NextEvent ReadModel::EventAfter(const core::JobUid& uid, int64_t revision) const {
  MutexLock lock(mu_);
  const auto job = jobs_.find(uid);
  if (job == jobs_.end()) return {};
  const auto it = job->second.events.upper_bound(revision);
  return {.event = it == job->second.events.end() ? nullptr : it->second,
          .gone_up_to = job->second.events_gone};
}

int64_t ReadModel::StepsPublished(const core::JobUid& uid) const {
  MutexLock lock(mu_);
  const auto job = jobs_.find(uid);
  return job == jobs_.end() ? 0 : job->second.steps_published;
}

int64_t ReadModel::revision() const {
  MutexLock lock(mu_);
  return revision_;
}

std::vector<ReadModel::Unfinished> ReadModel::UnfinishedJobs() const {
  MutexLock lock(mu_);
  std::vector<Unfinished> jobs;
  for (const core::JobUid& uid : unfinished_) {
    const Entry& entry = jobs_.at(uid);
    jobs.push_back({entry.job, entry.last_step, entry.queue_position});
  }
  return jobs;
}

std::vector<v1::Namespace> ReadModel::Namespaces() const {
  MutexLock lock(mu_);
  return namespaces_;
}

std::vector<std::shared_ptr<const v1::Job>> ReadModel::RecentJobs(absl::Time since) const {
  MutexLock lock(mu_);
  std::vector<std::shared_ptr<const v1::Job>> jobs;
  for (const core::JobUid& uid : unfinished_) jobs.push_back(jobs_.at(uid).job);
  for (auto it = ended_.lower_bound({since, ""}); it != ended_.end(); ++it) {
    jobs.push_back(jobs_.at(it->second).job);
  }
  return jobs;
}

std::vector<std::shared_ptr<const v1::Node>> ReadModel::Nodes() const {
  MutexLock lock(mu_);
  std::vector<std::shared_ptr<const v1::Node>> nodes;
  for (const auto& [name, node] : nodes_) nodes.push_back(node);
  return nodes;
}

std::vector<std::shared_ptr<const v1::Job>> ReadModel::FindByPrefix(std::string_view prefix,
                                                                    OfNamespace wanted,
                                                                    size_t limit) const {
  MutexLock lock(mu_);
  std::map<core::JobUid, std::shared_ptr<const v1::Job>> found;
  for (auto it = jobs_.lower_bound(std::string(prefix));
       it != jobs_.end() && it->first.starts_with(prefix) && found.size() < limit; ++it) {
    if (wanted(it->second.job->metadata().namespace_())) found[it->first] = it->second.job;
  }
  for (auto it = by_name_.lower_bound(prefix);
       it != by_name_.end() && it->first.starts_with(prefix) && found.size() < limit; ++it) {
    for (const core::JobUid& uid : it->second) {
      const auto& job = jobs_.at(uid).job;
      if (wanted(job->metadata().namespace_())) found[uid] = job;
    }
  }
  std::vector<std::shared_ptr<const v1::Job>> jobs;
  for (auto& [uid, job] : found) jobs.push_back(std::move(job));
  return jobs;
}

std::vector<std::shared_ptr<const v1::Job>> ReadModel::FindByName(std::string_view name) const {
  MutexLock lock(mu_);
  std::vector<std::shared_ptr<const v1::Job>> jobs;
  if (const auto it = by_name_.find(name); it != by_name_.end()) {
    for (const core::JobUid& uid : it->second) jobs.push_back(jobs_.at(uid).job);
  }
  return jobs;
}

ReadModel::Subscription::Subscription(ReadModel& model, core::JobUid uid,
                                      std::function<void()> wake)
    : model_(model), uid_(std::move(uid)), wake_(std::move(wake)) {
  MutexLock lock(model_.subscriptions_mu_);
  model_.subscriptions_[uid_].insert(this);
}

ReadModel::Subscription::~Subscription() {
  MutexLock lock(model_.subscriptions_mu_);
  const auto it = model_.subscriptions_.find(uid_);
  it->second.erase(this);
  if (it->second.empty()) model_.subscriptions_.erase(it);
}

void ReadModel::Changed(const std::set<core::JobUid>& uids) {
  if (uids.empty()) return;
  MutexLock lock(changed_mu_);
  changed_.insert(uids.begin(), uids.end());
  has_changed_.NotifyOne();
}

bool ReadModel::TakeChanged(std::chrono::steady_clock::time_point until,
                            std::set<core::JobUid>* uids) {
  MutexLock lock(changed_mu_);
  while (changed_.empty()) {
    if (!has_changed_.WaitUntil(changed_mu_, until)) break;
  }
  uids->swap(changed_);
  return !uids->empty();
}

void ReadModel::WakeChanged(std::chrono::steady_clock::time_point until) {
  for (std::set<core::JobUid> uids; TakeChanged(until, &uids); uids.clear()) {
    MutexLock lock(subscriptions_mu_);
    for (const core::JobUid& uid : uids) {
      const auto it = subscriptions_.find(uid);
      if (it == subscriptions_.end()) continue;
      for (Subscription* subscription : it->second) subscription->wake_();
    }
    if (std::chrono::steady_clock::now() >= until) return;
  }
}

void ReadModel::WakeAll() {
  MutexLock lock(subscriptions_mu_);
  for (const auto& [uid, subscriptions] : subscriptions_) {
    for (Subscription* subscription : subscriptions) subscription->wake_();
  }
}

}  // namespace mega::service
