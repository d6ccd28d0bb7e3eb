#include "coordinator/core/state.h"

#include <algorithm>

#include "base/clock.h"
#include "coordinator/core/apply.h"
#include "coordinator/core/health/findings.h"
#include "coordinator/core/recovery/records.h"

namespace mega::core {

bool IsTerminal(v1::JobPhase phase) {
  return phase == v1::JOB_PHASE_SUCCEEDED || phase == v1::JOB_PHASE_FAILED ||
         phase == v1::JOB_PHASE_CANCELLED;
}

const v1::Attempt& NewestAttempt(const v1::Job& job) { return *job.attempts().rbegin(); }
v1::Attempt& NewestAttempt(v1::Job& job) { return *job.mutable_attempts()->rbegin(); }

int64_t NewestCheckpoint(const v1::Job& job) {
  return job.checkpoints().empty() ? 0 : job.checkpoints().rbegin()->step();
}

const v1::Attempt* LiveAttempt(const v1::Job& job) {
  if (job.attempts().empty()) return nullptr;
  const v1::Attempt& newest = NewestAttempt(job);
  return newest.state() == v1::ATTEMPT_STATE_ENDED ? nullptr : &newest;
}

bool IsQueued(const v1::Job& job) {
  return !IsTerminal(job.phase()) && job.phase() != v1::JOB_PHASE_PAUSED &&
         LiveAttempt(job) == nullptr;
}

QueueKey KeyInQueue(const v1::Job& job) {
  return {-job.resolved_spec().scheduling().priority(),
          job.phase() == v1::JOB_PHASE_RECOVERING ? 0 : 1, FromProto(job.create_time()), job.uid()};
}

v1::Job JobView(const State& state, const JobUid& uid) {
  v1::Job job = state.durable.jobs.at(uid);
  const auto live = state.live.jobs.find(uid);
  if (live != state.live.jobs.end() && live->second.newest().step() > 0) {
    job.set_last_step(live->second.newest().step());
    job.set_last_loss(live->second.newest().loss());
  }
  if (state.live.last_wall != absl::InfinitePast()) ShowBudgets(job, state.live.last_wall);
  job.set_queue_position(0);
  int64_t position = 0;
  for (const auto& entry : state.index.queue) {
    ++position;
    if (std::get<JobUid>(entry) == uid) job.set_queue_position(position);
  }
  return job;
}

v1::Node NodeView(const State& state, const NodeId& id) {
  v1::Node node = state.durable.nodes.at(id);
  const auto live = state.live.nodes.find(id);
  const bool has_session = live != state.live.nodes.end() && live->second.session() != 0;
  if (node.state() == v1::NODE_STATE_READY && (!has_session || live->second.suspect())) {
    node.set_state(v1::NODE_STATE_SUSPECT);
  }
  if (live != state.live.nodes.end() && live->second.has_last_heartbeat()) {
    *node.mutable_last_heartbeat() = live->second.last_heartbeat();
  }
  const auto owned = state.index.device_owner.find(id);
  node.set_devices_in_use(owned == state.index.device_owner.end() ? 0 : std::ssize(owned->second));
  return node;
}

bool IsSchedulable(const State& state, const NodeId& id) {
  const auto node = state.durable.nodes.find(id);
  const auto live = state.live.nodes.find(id);
  if (node == state.durable.nodes.end() || live == state.live.nodes.end()) return false;
  return node->second.state() == v1::NODE_STATE_READY && !node->second.cordoned() &&
         live->second.session() != 0 && !live->second.suspect() &&
         live->second.unwanted().empty() && !HasError(node->second) &&
         absl::Nanoseconds(live->second.quiet_until_ns()) <= state.live.clock;
}

std::ranges::subrange<std::map<CommandKey, v1::PendingCommand>::const_iterator> CommandsOf(
    const State& state, const NodeId& node) {
  const auto& commands = state.durable.commands;
  return {commands.lower_bound({node, 0}), commands.upper_bound({node, INT64_MAX})};
}

std::set<JobUid> JobsOn(const State& state, const NodeId& node) {
  std::set<JobUid> jobs;
  const auto owned = state.index.device_owner.find(node);
  if (owned == state.index.device_owner.end()) return jobs;
  for (const auto& [device, uid] : owned->second) jobs.insert(uid);
  return jobs;
}

int64_t DevicesFor(const State& state, const JobUid& uid, const v1::Node& node) {
  const auto owned = state.index.device_owner.find(node.name());
  if (owned == state.index.device_owner.end()) return node.devices_size();
  return node.devices_size() - std::ranges::count_if(owned->second, [&](const auto& entry) {
           return entry.second != uid;
         });
}

v1::CoreSnapshot ToSnapshot(const State& state) {
  v1::CoreSnapshot snapshot;
  v1::CoreOptions& options = *snapshot.mutable_options();
  options.set_heartbeat_ns(absl::ToInt64Nanoseconds(state.options.heartbeat));
  options.set_suspect_ns(absl::ToInt64Nanoseconds(state.options.suspect));
  options.set_lease_ns(absl::ToInt64Nanoseconds(state.options.lease));
  options.set_skew_ns(absl::ToInt64Nanoseconds(state.options.skew));
  options.set_outage_grace_ns(absl::ToInt64Nanoseconds(state.options.outage_grace));
  options.set_cancel_grace_ns(absl::ToInt64Nanoseconds(state.options.cancel_grace));
  options.set_stop_again_ns(absl::ToInt64Nanoseconds(state.options.stop_again));
  options.set_plan_timeout_ns(absl::ToInt64Nanoseconds(state.options.plan_timeout));
  options.set_backoff_min_ns(absl::ToInt64Nanoseconds(state.options.backoff_min));
  options.set_backoff_max_ns(absl::ToInt64Nanoseconds(state.options.backoff_max));
  options.set_job_retention_ns(absl::ToInt64Nanoseconds(state.options.job_retention));
  options.set_most_ended_jobs(state.options.most_ended_jobs);
  options.set_node_retention_ns(absl::ToInt64Nanoseconds(state.options.node_retention));
  options.set_most_kept_bytes(state.options.most_kept_bytes);
  *snapshot.mutable_meta() = state.durable.meta;
  for (const auto& [uid, job] : state.durable.jobs) *snapshot.add_jobs() = job;
  for (const auto& [id, node] : state.durable.nodes) *snapshot.add_nodes() = node;
  for (const auto& [uid, events] : state.durable.events) {
    for (const auto& [revision, event] : events) *snapshot.add_events() = event;
  }
  for (const auto& [key, command] : state.durable.commands) *snapshot.add_commands() = command;
  for (const auto& [id, node] : state.live.nodes) (*snapshot.mutable_node_live())[id] = node;
  for (const auto& [uid, job] : state.live.jobs) (*snapshot.mutable_job_live())[uid] = job;
  for (const auto& [key, part] : state.live.parts) *snapshot.add_parts() = part;
  for (const auto& [uid, watch] : state.live.watches) *snapshot.add_watches() = watch;
  for (const auto& [name, limits] : state.durable.namespaces) *snapshot.add_namespaces() = limits;
  snapshot.set_cluster_revision(state.live.cluster_revision);
  snapshot.set_clock_ns(absl::ToInt64Nanoseconds(state.live.clock));
  snapshot.set_last_tick_ns(absl::ToInt64Nanoseconds(state.live.last_tick));
  if (state.live.last_wall != absl::InfinitePast()) {
    *snapshot.mutable_last_wall() = ToProto(state.live.last_wall);
  }
  snapshot.set_clock_stood_still(state.live.clock_stood_still);
  snapshot.set_witness_cursor(state.live.witness_cursor);
  return snapshot;
}

State FromSnapshot(const v1::CoreSnapshot& snapshot) {
  State state;
  const v1::CoreOptions& options = snapshot.options();
  state.options.heartbeat = absl::Nanoseconds(options.heartbeat_ns());
  state.options.suspect = absl::Nanoseconds(options.suspect_ns());
  state.options.lease = absl::Nanoseconds(options.lease_ns());
  state.options.skew = absl::Nanoseconds(options.skew_ns());
  state.options.outage_grace = absl::Nanoseconds(options.outage_grace_ns());
  state.options.cancel_grace = absl::Nanoseconds(options.cancel_grace_ns());
  state.options.stop_again = absl::Nanoseconds(options.stop_again_ns());
  state.options.plan_timeout = absl::Nanoseconds(options.plan_timeout_ns());
  state.options.backoff_min = absl::Nanoseconds(options.backoff_min_ns());
  state.options.backoff_max = absl::Nanoseconds(options.backoff_max_ns());
  if (options.job_retention_ns() > 0) {  // else of a release that forgot nothing
    state.options.job_retention = absl::Nanoseconds(options.job_retention_ns());
    state.options.most_ended_jobs = options.most_ended_jobs();
    state.options.node_retention = absl::Nanoseconds(options.node_retention_ns());
  }
  if (options.most_kept_bytes() > 0) state.options.most_kept_bytes = options.most_kept_bytes();
  v1::Mutation mutation;
  *mutation.mutable_put_meta() = snapshot.meta();
  Apply(state, mutation);
  for (const v1::Job& job : snapshot.jobs()) {
    *mutation.mutable_put_job() = job;
    Apply(state, mutation);
  }
  for (const v1::Node& node : snapshot.nodes()) state.durable.nodes[node.name()] = node;
  for (const v1::JobEvent& event : snapshot.events()) {
    state.durable.events[event.job_uid()][event.revision()] = event;
  }
  for (const v1::PendingCommand& command : snapshot.commands()) {
    state.durable.commands[{command.node(), command.command().seq()}] = command;
  }
  for (const auto& [id, node] : snapshot.node_live()) state.live.nodes[id] = node;
  for (const auto& [uid, job] : snapshot.job_live()) state.live.jobs[uid] = job;
  for (const v1::CheckpointPart& part : snapshot.parts()) {
    state.live.parts[{part.job_uid(), part.step(), part.rank()}] = part;
  }
  for (const v1::JobWatch& watch : snapshot.watches()) state.live.watches[watch.job_uid()] = watch;
  for (const v1::Namespace& limits : snapshot.namespaces()) {
    state.durable.namespaces[limits.name()] = limits;
  }
  state.live.cluster_revision = snapshot.cluster_revision();
  state.live.clock = absl::Nanoseconds(snapshot.clock_ns());
  state.live.last_tick = absl::Nanoseconds(snapshot.last_tick_ns());
  if (snapshot.has_last_wall()) state.live.last_wall = FromProto(snapshot.last_wall());
  state.live.clock_stood_still = snapshot.clock_stood_still();
  state.live.witness_cursor = snapshot.witness_cursor();
  return state;
}

}  // namespace mega::core
