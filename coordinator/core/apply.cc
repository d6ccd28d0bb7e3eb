#include "coordinator/core/apply.h"

#include "base/clock.h"

namespace mega::core {
namespace {

void Unindex(Index& index, const v1::Job& job) {
  if (const v1::Attempt* attempt = LiveAttempt(job)) {
    for (const v1::RankState& rank : attempt->ranks()) {
      const auto node = index.device_owner.find(rank.node());
      if (node == index.device_owner.end()) continue;
      const auto owner = node->second.find(rank.device());
      if (owner != node->second.end() && owner->second == job.uid()) node->second.erase(owner);
      if (node->second.empty()) index.device_owner.erase(node);
    }
  }
  if (!IsTerminal(job.phase())) {
    const auto use = index.namespace_use.find(job.metadata().namespace_());
    --use->second.jobs;
    if (const v1::Attempt* attempt = LiveAttempt(job)) use->second.devices -= attempt->ranks_size();
    if (use->second == NamespaceUse()) index.namespace_use.erase(use);
  }
  index.queue.erase(KeyInQueue(job));
  index.unfinished.erase(job.uid());
  index.ending.erase(job.uid());
  index.timed.erase(job.uid());
  if (IsTerminal(job.phase())) index.ended.erase({FromProto(job.end_time()), job.uid()});
  const auto name = index.names.find({job.metadata().namespace_(), job.metadata().name()});
  if (name != index.names.end() && name->second == job.uid()) index.names.erase(name);
}

void Reindex(Index& index, const v1::Job& job) {
  if (!job.request_id().empty()) index.request_ids[job.request_id()] = job.uid();
  if (const v1::Attempt* attempt = LiveAttempt(job)) {
    for (const v1::RankState& rank : attempt->ranks()) {
      index.device_owner[rank.node()][rank.device()] = job.uid();
    }
    if (job.resolved_spec().scheduling().has_time_limit()) index.timed.insert(job.uid());
    if (attempt->yields() || attempt->state() == v1::ATTEMPT_STATE_STOPPING) {
      index.ending.insert(job.uid());
    }
  }
  if (IsTerminal(job.phase())) {
    index.ended.insert({FromProto(job.end_time()), job.uid()});
    return;
  }
  index.unfinished.insert(job.uid());
  NamespaceUse& use = index.namespace_use[job.metadata().namespace_()];
  ++use.jobs;
  if (const v1::Attempt* attempt = LiveAttempt(job)) use.devices += attempt->ranks_size();
  index.names[{job.metadata().namespace_(), job.metadata().name()}] = job.uid();
  if (IsQueued(job)) index.queue.insert(KeyInQueue(job));
}

void PutJob(State& state, const v1::Job& job) {
  v1::Job& stored = state.durable.jobs[job.uid()];
  if (!stored.uid().empty()) Unindex(state.index, stored);
  stored = job;
  Reindex(state.index, stored);
}

void DeleteJob(State& state, const JobUid& uid) {
  const auto job = state.durable.jobs.find(uid);
  if (job == state.durable.jobs.end()) return;
  Unindex(state.index, job->second);
  const auto request = state.index.request_ids.find(job->second.request_id());
  if (request != state.index.request_ids.end() && request->second == uid) {
    state.index.request_ids.erase(request);
  }
  state.durable.jobs.erase(job);
  state.durable.events.erase(uid);
}

}  // namespace

void Apply(State& state, const v1::Mutation& mutation) {
  Durable& durable = state.durable;
  switch (mutation.kind_case()) {
    case v1::Mutation::kPutJob:
      return PutJob(state, mutation.put_job());
    case v1::Mutation::kPutNode:
      durable.nodes[mutation.put_node().name()] = mutation.put_node();
      return;
    case v1::Mutation::kDeleteNode:
      durable.nodes.erase(mutation.delete_node());
      return;
    case v1::Mutation::kPutEvent: {
      const v1::JobEvent& event = mutation.put_event();
      durable.events[event.job_uid()][event.revision()] = event;
      return;
    }
    case v1::Mutation::kDeleteEvent: {
      const auto events = durable.events.find(mutation.delete_event().job_uid());
      if (events != durable.events.end()) events->second.erase(mutation.delete_event().revision());
      return;
    }
    case v1::Mutation::kPutMeta:
      durable.meta = mutation.put_meta();
      return;
    case v1::Mutation::kPutCommand: {
      const v1::PendingCommand& pending = mutation.put_command();
      durable.commands[{pending.node(), pending.command().seq()}] = pending;
      return;
    }
    case v1::Mutation::kDeleteCommand:
      durable.commands.erase({mutation.delete_command().node(), mutation.delete_command().seq()});
      return;
    case v1::Mutation::kPutNamespace:
      durable.namespaces[mutation.put_namespace().name()] = mutation.put_namespace();
      return;
    case v1::Mutation::kDeleteNamespace:
      durable.namespaces.erase(mutation.delete_namespace());
      return;
    case v1::Mutation::kDeleteJob:
      return DeleteJob(state, mutation.delete_job());
    case v1::Mutation::KIND_NOT_SET:
      return;
  }
}

}  // namespace mega::core
