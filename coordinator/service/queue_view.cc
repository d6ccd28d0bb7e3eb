#include "coordinator/service/queue_view.h"

#include <algorithm>
#include <map>
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

std::vector<int64_t> Sizes(const Counts& counts) {
  std::vector<int64_t> sizes;
  for (const auto& [node, count] : counts) sizes.push_back(count);
  return sizes;
}

Counts Fleet(const Present& present) {
  Counts fleet;
  for (const auto& node : present.nodes) {
    v1::Node durable = *node;
    if (durable.state() == v1::NODE_STATE_SUSPECT) durable.set_state(v1::NODE_STATE_READY);
    if (core::IsOfFleet(durable)) fleet[node->name()] = node->devices_size();
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

// The devices are given or taken back where the fleet has the node.
void Add(Counts& counts, const Counts& some, int64_t sign) {
  for (const auto& [node, count] : some) {
    const auto known = counts.find(node);
    if (known != counts.end()) known->second += sign * count;
  }
}

Counts FreeNow(const Present& present) {
  Counts free = Fleet(present);
  for (const auto& unfinished : present.jobs) Add(free, HeldBy(*unfinished.job), -1);
  return free;
}

// From the nodes with most of them, as the planner does.
Counts Taken(const Counts& free, const Demand& demand) {
  std::vector<std::pair<int64_t, core::NodeId>> nodes;
  for (const auto& [node, count] : free) nodes.push_back({-count, node});
  std::ranges::sort(nodes);
  Counts taken;
  int64_t left = demand.devices;
  for (const auto& [negated, node] : nodes) {
    if (left <= 0 || std::ssize(taken) >= demand.nodes) break;
    const int64_t count = std::min({left, -negated, demand.per_node});
    taken[node] = count;
    left -= count;
  }
  return taken;
}

bool IsOverQuota(const Present& present, const v1::Job& job, int64_t devices) {
  for (const v1::Namespace& limits : present.namespaces) {
    if (limits.name() != job.metadata().namespace_()) continue;
    return limits.max_devices() > 0 && devices > limits.max_devices() - limits.devices_in_use();
  }
  return false;
}

// When devices come back, job by job, and who takes them then.
class Forecast {
 public:
  explicit Forecast(const Present& present)
      : present_(present), fleet_(Fleet(present)), free_(FreeNow(present)), at_(present.now) {
    for (const auto& running : present.jobs) {
      const Counts held = HeldBy(*running.job);
      if (held.empty()) continue;
      if (const auto end = EndOf(running, present.now)) ends_.insert({*end, held});
    }
  }

  // For each job in the order of the queue.
  std::optional<absl::Time> StartOf(const v1::Job& job, const Demand& demand) {
    // Others pass it.
    if (!core::HasRoom(Sizes(fleet_), demand)) return std::nullopt;
    if (IsOverQuota(present_, job, demand.devices)) return std::nullopt;
    while (!is_open_ && !core::HasRoom(Sizes(free_), demand)) {
      if (ends_.empty()) {
        is_open_ = true;
        break;
      }
      const auto next = ends_.extract(ends_.begin());
      at_ = std::max(at_, next.key());
      Add(free_, next.mapped(), 1);
    }
    if (is_open_) return std::nullopt;
    const Counts taken = Taken(free_, demand);
    Add(free_, taken, -1);
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
  const Counts fleet_;
  Counts free_;
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

Demand DemandOf(const v1::Job& job, const Counts& fleet) {
  return core::DemandOf(job.resolved_spec(), core::WantedNodes(job), Sizes(fleet));
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

std::vector<v1::QueueEntry> QueueView(const Present& present) {
  const std::vector<const v1::Job*> waiting = InOrder(present);
  const Counts fleet = Fleet(present);
  Forecast forecast(present);
  std::vector<v1::QueueEntry> entries;
  for (const v1::Job* one : waiting) {
    const v1::Job& job = *one;
    const Demand demand = DemandOf(job, fleet);
    v1::QueueEntry& entry = entries.emplace_back();
    entry.set_name(job.name());
    entry.set_uid(job.uid());
    *entry.mutable_metadata() = job.metadata();
    entry.set_position(std::ssize(entries));
    entry.set_priority(core::PriorityOf(job));
    entry.set_devices(demand.devices);
    entry.set_reason(job.reason());
    if (job.has_queue_time()) *entry.mutable_queue_time() = job.queue_time();
    if (const auto start = forecast.StartOf(job, demand)) {
      *entry.mutable_estimated_start_time() = ToProto(*start);
    }
  }
  return entries;
}

v1::QueueEntry WouldWait(const Present& present, const v1::JobMetadata& metadata,
                         const v1::JobSpec& resolved, int64_t devices) {
  v1::Job job;
  *job.mutable_metadata() = metadata;
  *job.mutable_resolved_spec() = resolved;
  const Counts fleet = Fleet(present);
  Demand demand = DemandOf(job, fleet);
  demand.devices = devices;
  v1::QueueEntry entry;
  *entry.mutable_metadata() = metadata;
  entry.set_priority(core::PriorityOf(job));
  entry.set_devices(devices);

  Forecast forecast(present);
  std::vector<const v1::Job*> before = InOrder(present);
  std::erase_if(before,
                [&](const v1::Job* other) { return core::PriorityOf(*other) < entry.priority(); });
  for (const v1::Job* other : before) forecast.StartOf(*other, DemandOf(*other, fleet));
  entry.set_position(std::ssize(before) + 1);
  const auto start = forecast.StartOf(job, demand);
  if (start) *entry.mutable_estimated_start_time() = ToProto(*start);
  if (!core::HasRoom(Sizes(fleet), demand)) {
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
  const auto victims = core::ChooseVictims(FreeNow(present), holders, entry.priority(), demand);
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
