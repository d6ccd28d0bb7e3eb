// All that the coordinator knows, in two parts that never mix: what is durable (changed only by
// Apply, reloaded after a restart) and what lives as long as the process. A value: copy it freely.
// Ordered containers only, so that the same inputs give the same decisions, byte for byte.
#pragma once

#include <cstdint>
#include <map>
#include <ranges>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/time/time.h"
#include "coordinator/core/options.h"
#include "mega/v1/coordinator.pb.h"

namespace mega::core {

using NodeId = std::string;
using JobUid = std::string;
using CommandKey = std::pair<NodeId, int64_t>;         // node, seq
using PartKey = std::tuple<JobUid, int64_t, int64_t>;  // job, step, rank

// Events of one job that readers get. One more is kept, the newest that they no longer do: it marks
// where a gap ends, also for the next process. Older ones are deleted as new ones come.
inline constexpr size_t kEventsPerJob = 1000;

struct Durable {
  v1::Meta meta;
  std::map<JobUid, v1::Job> jobs;
  std::map<NodeId, v1::Node> nodes;
  std::map<JobUid, std::map<int64_t, v1::JobEvent>> events;  // by revision
  std::map<CommandKey, v1::PendingCommand> commands;
  std::map<std::string, v1::Namespace> namespaces;  // those with limits; others may be used too
};

// What the unfinished jobs of a namespace hold together.
struct NamespaceUse {
  int64_t devices = 0;  // of attempts not ended
  int64_t jobs = 0;
  friend bool operator==(const NamespaceUse&, const NamespaceUse&) = default;
};

// Place in the queue: highest priority first (negated), then recovering jobs before new ones, then
// by submission.
using QueueKey = std::tuple<int64_t, int, absl::Time, JobUid>;

// Follows from Durable; kept by Apply, never stored.
struct Index {
  std::map<NodeId, std::map<int64_t, JobUid>> device_owner;  // devices of attempts not ended
  std::map<std::pair<std::string, std::string>, JobUid>
      names;  // (namespace, name) of unfinished jobs
  std::map<std::string, JobUid> request_ids;
  std::set<JobUid> unfinished;
  std::set<JobUid> ending;  // their live attempt saves before it yields, or is stopping
  std::set<JobUid> timed;   // have a time limit and a live attempt
  std::set<std::pair<absl::Time, JobUid>> ended;  // terminal jobs, by their end
  std::set<QueueKey> queue;                       // who is next; jobs without a live attempt only
  std::map<std::string, NamespaceUse> namespace_use;  // of those with unfinished jobs
  friend bool operator==(const Index&, const Index&) = default;
};

// Gone with the process. Times are on the core's own clock: it starts at 0 with the state, never
// runs backwards, and wall time that jumps back stands still on it.
struct Volatile {
  std::map<NodeId, v1::NodeLive> nodes;
  std::map<JobUid, v1::JobLive> jobs;
  std::map<PartKey, v1::CheckpointPart> parts;  // of checkpoints not complete yet
  std::map<JobUid, v1::JobWatch> watches;       // of live attempts (health/)
  int64_t cluster_revision = 1;                 // rises whenever what can be given to a job changes
  absl::Duration clock;
  absl::Duration last_tick;
  absl::Time last_wall = absl::InfinitePast();
  bool clock_stood_still = false;  // wall time was set back since the last tick
  NodeId witness_cursor;           // witness sets were looked through up to this node
};

struct State {
  Options options;
  Durable durable;
  Index index;
  Volatile live;
};

// Ways of looking at a State; none changes it.

bool IsTerminal(v1::JobPhase phase);
// The job has one.
const v1::Attempt& NewestAttempt(const v1::Job& job);
v1::Attempt& NewestAttempt(v1::Job& job);
// The step of the newest checkpoint; 0 without any.
int64_t NewestCheckpoint(const v1::Job& job);
// The newest attempt if there is one and its ranks may still run; else null.
const v1::Attempt* LiveAttempt(const v1::Job& job);
// Stands in the queue: not ended, not paused, no live attempt.
bool IsQueued(const v1::Job& job);
QueueKey KeyInQueue(const v1::Job& job);
// The job as users see it: newest step and loss, place in the queue. `job` must be in the state.
v1::Job JobView(const State& state, const JobUid& uid);
// The node as users see it: suspect or not, last heartbeat, devices in use.
v1::Node NodeView(const State& state, const NodeId& id);
// May a job be placed on it now? In session, renewed of late, and nothing runs there unasked.
bool IsSchedulable(const State& state, const NodeId& id);
// Commands that the node's worker has not kept yet, in the order in which they were given.
std::ranges::subrange<std::map<CommandKey, v1::PendingCommand>::const_iterator> CommandsOf(
    const State& state, const NodeId& node);
// Those that have devices there, in attempts not ended.
std::set<JobUid> JobsOn(const State& state, const NodeId& node);
// Devices of the node that no other job has: the free ones, and the job's own.
int64_t DevicesFor(const State& state, const JobUid& uid, const v1::Node& node);

// The journal's form of a state, and back. FromSnapshot(ToSnapshot(s)) behaves exactly as s.
v1::CoreSnapshot ToSnapshot(const State& state);
State FromSnapshot(const v1::CoreSnapshot& snapshot);

}  // namespace mega::core
