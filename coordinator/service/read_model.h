// What readers see: the durable state, published piece by piece as batches become durable. Readers
// share the pieces and never wait for the loop; the loop never waits for a reader. Streams (watch,
// steps, logs) pull from here and are woken when there may be more, so no reader has a buffer.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/mutex.h"
#include "coordinator/core/state.h"
#include "mega/v1/coordinator.pb.h"

namespace mega::service {

// What one decision changed. Made on the loop thread, published when durable.
struct Publication {
  std::vector<std::shared_ptr<const v1::Job>> jobs;
  std::vector<std::shared_ptr<const v1::JobEvent>> events;
  std::vector<core::JobUid> deleted_jobs;
  std::vector<std::shared_ptr<const v1::Node>> nodes;
  std::vector<std::string> deleted_nodes;
  std::optional<std::map<core::JobUid, int64_t>> queue;  // all positions anew
  std::optional<std::vector<v1::Namespace>> namespaces;  // all of them
  int64_t revision = 0;                                  // 0: as before

  bool empty() const {
    return jobs.empty() && events.empty() && deleted_jobs.empty() && nodes.empty() &&
           deleted_nodes.empty() && !queue && !namespaces && revision == 0;
  }
};

// Place in the list of jobs: (create time in ns, uid).
using JobKey = std::pair<int64_t, core::JobUid>;

class ReadModel {
 public:
  // Everything a loaded state holds, before serving starts.
  void Load(const core::State& state);
  void Publish(const Publication& publication);
  // Newest step of a job that is in its history. Wakes the job's streams.
  void PublishStep(const v1::StepReport& report);

  // As users see it: newest step, loss and place in the queue filled in; checkpoints without their
  // tensors and slices (manifest.json has them), and the end of stderr of the rank that failed
  // first alone (the logs have the others'): a job must fit a message. nullopt: no such uid.
  std::optional<v1::Job> Job(const core::JobUid& uid) const;
  // The record alone, without copying it. Null: no such uid.
  std::shared_ptr<const v1::Job> JobRecord(const core::JobUid& uid) const;
  std::optional<v1::Node> Node(const std::string& name) const;
  using OfNamespace = absl::FunctionRef<bool(const std::string& name_space)>;
  // At most `limit` after `after` in the namespaces for which `wanted` is true, oldest first. Of
  // the attempts only the newest, without its ranks: a page must fit a message.
  std::vector<v1::Job> ListJobs(OfNamespace wanted, const JobKey& after, size_t limit) const;
  std::vector<v1::Node> ListNodes(const std::string& after, size_t limit) const;
  struct NextEvent {
    std::shared_ptr<const v1::JobEvent> event;  // null: none yet
    int64_t gone_up_to =
        0;  // revision of the newest event of the job that is gone; 0: all are there
  };
  // The oldest event after `revision`, and where a gap before it would end: both at one moment.
  NextEvent EventAfter(const core::JobUid& uid, int64_t revision) const;
  // Rises with each PublishStep of the job.
  int64_t StepsPublished(const core::JobUid& uid) const;
  int64_t revision() const;

  struct Unfinished {
    std::shared_ptr<const v1::Job> job;
    int64_t last_step = 0;
    int64_t queue_position = 0;  // 0: does not wait
  };
  std::vector<Unfinished> UnfinishedJobs() const;
  std::vector<v1::Namespace> Namespaces() const;  // by name, with what each holds

  // Unfinished jobs and those that ended at or after `since`, for the exporter.
  std::vector<std::shared_ptr<const v1::Job>> RecentJobs(absl::Time since) const;
  std::vector<std::shared_ptr<const v1::Node>> Nodes() const;
  // Jobs of wanted namespaces whose uid or name starts with `prefix`, at most about `limit`.
  std::vector<std::shared_ptr<const v1::Job>> FindByPrefix(std::string_view prefix,
                                                           OfNamespace wanted, size_t limit) const;
  std::vector<std::shared_ptr<const v1::Job>> FindByName(std::string_view name) const;

  // Calls `wake` after each change of the job, and at each WakeAll, until destroyed: on the thread
  // that calls WakeChanged, never on a publisher's. The destructor waits for a running call. `wake`
  // must not create or destroy subscriptions.
  class Subscription {
   public:
    Subscription(ReadModel& model, core::JobUid uid, std::function<void()> wake);
    ~Subscription();
    Subscription(const Subscription&) = delete;
    Subscription& operator=(const Subscription&) = delete;

   private:
    friend class ReadModel;
    ReadModel& model_;
    const core::JobUid uid_;
    const std::function<void()> wake_;
  };
  // Wakes the streams of changed jobs until then.
  void WakeChanged(std::chrono::steady_clock::time_point until);
  // Lets all streams look at their deadlines.
  void WakeAll();

 private:
  struct Entry {
    std::shared_ptr<const v1::Job> job;
    int64_t last_attempt = 0;  // that reported last_step
    int64_t last_step = 0;
    double last_loss = 0;
    int64_t steps_published = 0;
    int64_t queue_position = 0;
    std::map<int64_t, std::shared_ptr<const v1::JobEvent>> events;
    int64_t events_gone = 0;  // newest revision that readers no longer get
  };
  // An entry without its events: what a reader takes along out of the lock.
  struct Sample {
    std::shared_ptr<const v1::Job> job;
    int64_t last_step = 0;
    double last_loss = 0;
    int64_t queue_position = 0;
  };
  void PutJob(std::shared_ptr<const v1::Job> job) MEGA_REQUIRES(mu_);
  void DeleteJob(const core::JobUid& uid) MEGA_REQUIRES(mu_);
  static Sample Take(const Entry& entry) {
    return {entry.job, entry.last_step, entry.last_loss, entry.queue_position};
  }
  static v1::Job View(const Sample& sample);
  void Changed(const std::set<core::JobUid>& uids);
  bool TakeChanged(std::chrono::steady_clock::time_point until, std::set<core::JobUid>* uids);

  mutable Mutex mu_;
  std::map<core::JobUid, Entry> jobs_ MEGA_GUARDED_BY(mu_);
  std::set<JobKey> by_time_ MEGA_GUARDED_BY(mu_);
  std::map<std::string, std::set<core::JobUid>, std::less<>> by_name_ MEGA_GUARDED_BY(mu_);
  std::map<std::string, std::shared_ptr<const v1::Node>> nodes_ MEGA_GUARDED_BY(mu_);
  std::set<core::JobUid> unfinished_ MEGA_GUARDED_BY(mu_);
  std::set<std::pair<absl::Time, core::JobUid>> ended_ MEGA_GUARDED_BY(mu_);
  std::vector<v1::Namespace> namespaces_ MEGA_GUARDED_BY(mu_);
  int64_t revision_ MEGA_GUARDED_BY(mu_) = 0;

  Mutex changed_mu_;
  CondVar has_changed_;
  std::set<core::JobUid> changed_ MEGA_GUARDED_BY(changed_mu_);

  // Taken before a stream's own lock and before mu_.
  Mutex subscriptions_mu_;
  std::map<core::JobUid, std::set<Subscription*>> subscriptions_ MEGA_GUARDED_BY(subscriptions_mu_);
};

}  // namespace mega::service
