#include "coordinator/service/queue_view.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "coordinator/core/jobs/time_limit.h"
#include "coordinator/core/jobs/yield.h"
#include "coordinator/core/queue/demand.h"
#include "coordinator/core/queue/placement.h"
#include "coordinator/core/queue/victims.h"
#include "coordinator/core/recovery/resize.h"
#include "fmt/core.h"

namespace mega::service {
namespace {

using core::Demand;
using Counts = std::map<core::NodeId, int64_t>;  // devices, by node
// A year: later than anybody plans.
constexpr absl::Duration kFarAway = absl::Hours(24 * 365);

// Devices of each node, and the nodes by how many they have: what a fleet of ten thousand has room
// for is asked for each job that waits.
class Devices {
 public:
  void Put(const core::NodeId& node, int64_t count) {
    counts_[node] = count;
    nodes_[count].insert(node);
  }
  // Given or taken back where the fleet has the node.
  void Add(const Counts& some, int64_t sign) {
    for (const auto& [node, count] : some) {
      const auto known = counts_.find(node);
      if (known == counts_.end()) continue;
      const auto same = nodes_.find(known->second);
      same->second.erase(node);
      if (same->second.empty()) nodes_.erase(same);
      Put(node, known->second + sign * count);
    }
  }
  // As core::HasRoom.
  bool HasRoom(const Demand& demand) const {
    int64_t nodes = demand.nodes;
    int64_t devices = 0;
    for (const auto& [count, same] : nodes_) {
      const int64_t used = std::min(nodes, std::ssize(same));
      devices += used * std::min(count, demand.per_node);
      nodes -= used;
      if (nodes == 0) break;
    }
    return devices >= demand.devices;
  }
  // From the nodes with most of them, as the planner does.
  Counts Choose(const Demand& demand) const {
    Counts chosen;
    int64_t left = demand.devices;
    for (const auto& [count, same] : nodes_) {
      for (const core::NodeId& node : same) {
        if (left <= 0 || std::ssize(chosen) >= demand.nodes) return chosen;
        const int64_t some = std::min({left, count, demand.per_node});
        chosen[node] = some;
        left -= some;
      }
    }
    return chosen;
  }
  // How many the largest nodes have.
  std::vector<int64_t> Largest(int64_t nodes) const {
    std::vector<int64_t> largest;
    for (const auto& [count, same] : nodes_) {
      const int64_t left = nodes - std::ssize(largest);
      if (left <= 0) break;
      largest.insert(largest.end(), std::min(left, std::ssize(same)), count);
    }
    return largest;
  }
  const Counts& counts() const { return counts_; }

 private:
  Counts counts_;
  std::map<int64_t, std::set<core::NodeId>, std::greater<>> nodes_;  // by count
};

Devices Fleet(const Present& present) {
  Devices fleet;
  v1::Node seen;  // without its devices and labels, which would be copied for nothing
  for (const auto& node : present.nodes) {
    const bool is_there =
        node->state() == v1::NODE_STATE_READY || node->state() == v1::NODE_STATE_SUSPECT;
    seen.set_state(is_there ? v1::NODE_STATE_READY : node->state());
    seen.set_cordoned(node->cordoned());
    if (core::IsOfFleet(seen)) fleet.Put(node->name(), node->devices_size());
  }
  return fleet;
}

Counts HeldBy(const v1::Job& job) {
  Counts held;
  if (const v1::Attempt* attempt = core::LiveAttempt(job)) {
    for (const v1::RankState& rank : attempt->ranks()) ++held[rank.node()];
  }
  return held;
}

bool IsOverQuota(const Present& present, const v1::Job& job, int64_t devices) {
  const std::string& name = job.metadata().namespace_();
  const auto limits = std::ranges::lower_bound(present.namespaces, name, {}, &v1::Namespace::name);
  return limits != present.namespaces.end() && limits->name() == name &&
         limits->max_devices() > 0 && devices > limits->max_devices() - limits->devices_in_use();
}

// When devices come back, job by job, and who takes them then.
class Forecast {
 public:
  explicit Forecast(const Present& present)
      : present_(present), fleet_(Fleet(present)), free_(fleet_), at_(present.now) {
    for (const auto& running : present.jobs) {
      const Counts held = HeldBy(*running.job);
      if (held.empty()) continue;
      free_.Add(held, -1);
      if (const auto end = EndOf(running, present.now)) ends_.insert({*end, held});
    }
  }

  const Devices& fleet() const { return fleet_; }
  // Until StartOf is called first: now.
  const Devices& free() const { return free_; }

  Demand DemandOf(const v1::Job& job) const {
    const v1::JobSpec& spec = job.resolved_spec();
    const bool is_counted =
        spec.parallelism().has_data_parallel_size() || spec.resources().has_devices_per_node();
    const int64_t nodes =
        std::max({int64_t{1}, core::WantedNodes(job), spec.resources().nodes().desired()});
    return core::DemandOf(spec, core::WantedNodes(job),
                          is_counted ? std::vector<int64_t>() : fleet_.Largest(nodes));
  }

  // For each job in the order of the queue.
  std::optional<absl::Time> StartOf(const v1::Job& job, const Demand& demand) {
    // Others pass it.
    if (!fleet_.HasRoom(demand)) return std::nullopt;
    if (IsOverQuota(present_, job, demand.devices)) return std::nullopt;
    while (!is_open_ && !free_.HasRoom(demand)) {
      if (ends_.empty()) {
        is_open_ = true;
        break;
      }
      const auto next = ends_.extract(ends_.begin());
      at_ = std::max(at_, next.key());
      free_.Add(next.mapped(), 1);
    }
    if (is_open_) return std::nullopt;
    const Counts taken = free_.Choose(demand);
    free_.Add(taken, -1);
    const v1::Scheduling& said = job.resolved_spec().scheduling();
    if (said.has_estimated_runtime() || said.has_time_limit()) {
      ends_.insert({at_ + FromProto(said.has_estimated_runtime() ? said.estimated_runtime()
                                                                 : said.time_limit()),
                    taken});
    }
    return at_;
  }

 private:
  const Present& present_;
  const Devices fleet_;
  Devices free_;
  std::multimap<absl::Time, Counts> ends_;
  absl::Time at_;
  bool is_open_ = false;  // somebody before it waits nobody knows how long
};

// Jobs that wait, next first. Not by the positions that were published: those are as old as the
// last tick.
std::vector<const v1::Job*> InOrder(const Present& present) {
  std::vector<const v1::Job*> waiting;
  for (const auto& unfinished : present.jobs) {
    if (core::IsQueued(*unfinished.job)) waiting.push_back(unfinished.job.get());
  }
  std::ranges::sort(waiting, {}, [](const v1::Job* job) { return core::KeyInQueue(*job); });
  return waiting;
}

}  // namespace

Present TakePresent(const ReadModel& reads, absl::Time now) {
  return {.jobs = reads.UnfinishedJobs(),
          .nodes = reads.Nodes(),
          .namespaces = reads.Namespaces(),
          .now = now};
}

std::optional<absl::Time> EndOf(const ReadModel::Unfinished& running, absl::Time now) {
  const v1::Job& job = *running.job;
  const v1::Attempt* attempt = core::LiveAttempt(job);
  if (attempt == nullptr) return std::nullopt;
  if (attempt->yields() || attempt->state() == v1::ATTEMPT_STATE_STOPPING) {
    return now + core::YieldGrace(job);
  }
  const v1::Scheduling& said = job.resolved_spec().scheduling();
  std::optional<absl::Time> end;
  const int64_t made = running.last_step - attempt->start_step();
  if (attempt->has_first_step_time() && made > 1 && attempt->plan().steps() > 0) {
    const absl::Duration a_step = (now - FromProto(attempt->first_step_time())) / (made - 1);
    const auto left =
        static_cast<double>(std::max<int64_t>(attempt->plan().steps() - running.last_step, 0));
    end = now + std::min(a_step * left, kFarAway);
  } else if (said.has_estimated_runtime()) {
    end = std::max(now, FromProto(attempt->create_time()) + FromProto(said.estimated_runtime()));
  }
  if (!said.has_time_limit()) return end;
  const absl::Duration left = FromProto(said.time_limit()) - core::TimeUsed(job, now);
  const absl::Time latest = now + std::max(left, absl::ZeroDuration());
  return end ? std::min(*end, latest) : latest;
}

void VisitQueue(const Present& present, absl::FunctionRef<bool(v1::QueueEntry)> visit) {
  Forecast forecast(present);
  int64_t position = 0;
  for (const v1::Job* one : InOrder(present)) {
    const v1::Job& job = *one;
    const Demand demand = forecast.DemandOf(job);
    v1::QueueEntry entry;
    entry.set_name(job.name());
    entry.set_uid(job.uid());
    *entry.mutable_metadata() = job.metadata();
    entry.set_position(++position);
    entry.set_priority(core::PriorityOf(job));
    entry.set_devices(demand.devices);
    entry.set_reason(job.reason());
    if (job.has_queue_time()) *entry.mutable_queue_time() = job.queue_time();
    if (const auto start = forecast.StartOf(job, demand)) {
      *entry.mutable_estimated_start_time() = ToProto(*start);
    }
    if (!visit(std::move(entry))) return;
  }
}

v1::QueueEntry WouldWait(const Present& present, const v1::JobMetadata& metadata,
                         const v1::JobSpec& resolved, int64_t devices) {
  v1::Job job;
  *job.mutable_metadata() = metadata;
  *job.mutable_resolved_spec() = resolved;
  Forecast forecast(present);
  const Counts free_now = forecast.free().counts();
  Demand demand = forecast.DemandOf(job);
  demand.devices = devices;
  v1::QueueEntry entry;
  *entry.mutable_metadata() = metadata;
  entry.set_priority(core::PriorityOf(job));
  entry.set_devices(devices);

  std::vector<const v1::Job*> before = InOrder(present);
  std::erase_if(before,
                [&](const v1::Job* other) { return core::PriorityOf(*other) < entry.priority(); });
  for (const v1::Job* other : before) forecast.StartOf(*other, forecast.DemandOf(*other));
  entry.set_position(std::ssize(before) + 1);
  const auto start = forecast.StartOf(job, demand);
  if (start) *entry.mutable_estimated_start_time() = ToProto(*start);
  if (!forecast.fleet().HasRoom(demand)) {
    entry.set_reason("the present fleet cannot hold it, even idle; others would pass it");
    return entry;
  }
  if (IsOverQuota(present, job, devices)) {
    entry.set_reason(fmt::format("namespace '{}' holds too much of its quota (max_devices)",
                                 metadata.namespace_()));
    return entry;
  }
  if (start && *start <= present.now) {
    entry.set_reason("it starts at once");
    return entry;
  }
  std::vector<core::Holder> holders;
  std::map<core::JobUid, std::string> names;
  for (const auto& running : present.jobs) {
    if (core::LiveAttempt(*running.job) == nullptr) continue;
    holders.push_back(core::HolderOf(*running.job, present.now));
    names[running.job->uid()] = running.job->name();
  }
  const auto victims = core::ChooseVictims(free_now, holders, entry.priority(), demand);
  if (victims && !victims->empty() && before.empty()) {
    for (const core::JobUid& uid : *victims) entry.add_preempts(names.at(uid));
    entry.set_reason("jobs of lower priority would save and give way");
    return entry;
  }
  entry.set_reason(before.empty() ? "it waits for devices that are in use"
                                  : fmt::format("{} {} before it", before.size(),
                                                before.size() == 1 ? "job stands" : "jobs stand"));
  return entry;
}

}  // namespace mega::service
