#include "coordinator/core/draft.h"

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "coordinator/core/apply.h"
#include "coordinator/core/jobs/goodput.h"

namespace mega::core {
namespace {

// Words of ranks and users may be in it; a job has many events, and readers get them all.
constexpr size_t kEventMessageBytes = 8 << 10;

}  // namespace

Draft::Draft(State& state, absl::Time wall) : state_(state), meta_(state.durable.meta) {
  Volatile& live = state_.live;
  if (live.last_wall != absl::InfinitePast() && wall > live.last_wall) {
    live.clock += wall - live.last_wall;
  }
  live.clock_stood_still |= wall < live.last_wall;
  live.last_wall = wall;
}

google::protobuf::Timestamp Draft::wall() const { return ToProto(state_.live.last_wall); }

const v1::Job* Draft::FindJob(const JobUid& uid) const {
  if (const auto edited = jobs_.find(uid); edited != jobs_.end()) return &edited->second;
  const auto stored = state_.durable.jobs.find(uid);
  return stored == state_.durable.jobs.end() ? nullptr : &stored->second;
}

v1::Job& Draft::EditJob(const JobUid& uid) {
  touched_.insert(uid);
  if (const auto edited = jobs_.find(uid); edited != jobs_.end()) return edited->second;
  v1::Job& job = jobs_[uid] = state_.durable.jobs.at(uid);
  // Step reports change nothing durable by themselves; they ride along with what does.
  const auto live = state_.live.jobs.find(uid);
  if (live != state_.live.jobs.end() && live->second.newest().step() > 0) {
    const v1::StepReport& newest = live->second.newest();
    job.set_last_step(newest.step());
    job.set_last_loss(newest.loss());
    v1::Attempt& attempt = NewestAttempt(job);
    if (attempt.epoch() == newest.epoch()) {
      attempt.set_last_step(std::max(attempt.last_step(), newest.step()));
    }
  }
  return job;
}

void Draft::AddJob(v1::Job job) {
  touched_.insert(job.uid());
  jobs_[job.uid()] = std::move(job);
}

void Draft::DeleteJob(const JobUid& uid) {
  jobs_.erase(uid);
  touched_.erase(uid);
  v1::Mutation mutation;
  mutation.set_delete_job(uid);
  Mutate(std::move(mutation));
  state_.live.jobs.erase(uid);
  ForgetParts(uid);
}

const v1::Node* Draft::FindNode(const NodeId& id) const {
  if (const auto edited = nodes_.find(id); edited != nodes_.end()) return &edited->second;
  const auto stored = state_.durable.nodes.find(id);
  return stored == state_.durable.nodes.end() ? nullptr : &stored->second;
}

v1::Node& Draft::EditNode(const NodeId& id) {
  if (const auto edited = nodes_.find(id); edited != nodes_.end()) return edited->second;
  return nodes_[id] = state_.durable.nodes.at(id);
}

void Draft::AddNode(v1::Node node) { nodes_[node.name()] = std::move(node); }

void Draft::DeleteNode(const NodeId& id) {
  nodes_.erase(id);
  const auto& commands = state_.durable.commands;
  for (auto it = commands.lower_bound({id, 0}); it != commands.end() && it->first.first == id;
       it = commands.lower_bound({id, 0})) {
    DeleteCommand(CommandKey(it->first));
  }
  v1::Mutation mutation;
  mutation.set_delete_node(id);
  Mutate(std::move(mutation));
  state_.live.nodes.erase(id);
}

v1::Meta& Draft::EditMeta() {
  meta_edited_ = true;
  return meta_;
}

void Draft::AddEvent(const JobUid& uid, v1::Severity severity, std::string_view reason,
                     std::string_view message,
                     std::initializer_list<std::pair<std::string_view, std::string>> fields) {
  v1::Meta& meta = EditMeta();
  meta.set_revision(meta.revision() + 1);
  v1::Mutation mutation;
  v1::JobEvent& event = *mutation.mutable_put_event();
  event.set_revision(meta.revision());
  event.set_job_uid(uid);
  *event.mutable_time() = wall();
  event.set_severity(severity);
  event.set_reason(reason.data(), reason.size());
  event.set_message(CutUtf8(message, kEventMessageBytes));
  const v1::Job* job = FindJob(uid);
  if (job != nullptr && !job->attempts().empty()) {
    event.set_attempt(NewestAttempt(*job).number());
  }
  for (const auto& [key, value] : fields) (*event.mutable_fields())[std::string(key)] = value;
  Mutate(std::move(mutation));

  const auto& events = state_.durable.events.at(uid);
  if (events.size() <= kEventsPerJob + 1) return;
  v1::Mutation oldest;
  oldest.mutable_delete_event()->set_job_uid(uid);
  oldest.mutable_delete_event()->set_revision(events.begin()->first);
  Mutate(std::move(oldest));
}

void Draft::AddCommand(const NodeId& node, v1::Command command) {
  v1::Node& record = EditNode(node);
  record.set_last_command_seq(record.last_command_seq() + 1);
  command.set_seq(record.last_command_seq());
  const int64_t session = LiveNode(node).session();
  if (session != 0) {
    v1::CoordinatorMessage message;
    *message.mutable_command() = command;
    Send(node, session, std::move(message), /*immediate=*/false);
  }
  v1::Mutation mutation;
  mutation.mutable_put_command()->set_node(node);
  *mutation.mutable_put_command()->mutable_command() = std::move(command);
  Mutate(std::move(mutation));
}

void Draft::DeleteCommand(const CommandKey& key) {
  v1::Mutation mutation;
  mutation.mutable_delete_command()->set_node(key.first);
  mutation.mutable_delete_command()->set_seq(key.second);
  Mutate(std::move(mutation));
}

void Draft::PutNamespace(v1::Namespace limits) {
  v1::Mutation mutation;
  *mutation.mutable_put_namespace() = std::move(limits);
  Mutate(std::move(mutation));
}

void Draft::DeleteNamespace(const std::string& name) {
  v1::Mutation mutation;
  mutation.set_delete_namespace(name);
  Mutate(std::move(mutation));
}

void Draft::ForgetParts(const JobUid& uid) {
  auto& parts = state_.live.parts;
  parts.erase(parts.lower_bound({uid, 0, 0}), parts.upper_bound({uid, INT64_MAX, INT64_MAX}));
}

void Draft::ClusterChanged() {
  state_.live.cluster_revision = std::max(state_.live.cluster_revision + 1, meta_.revision());
}

void Draft::Send(const NodeId& node, int64_t session, v1::CoordinatorMessage message,
                 bool immediate) {
  v1::Effect& effect = decision_.effects.emplace_back();
  effect.set_immediate(immediate);
  effect.mutable_send()->set_node(node);
  effect.mutable_send()->set_session(session);
  *effect.mutable_send()->mutable_message() = std::move(message);
}

void Draft::CloseSession(const NodeId& node, int64_t session) {
  v1::Effect& effect = decision_.effects.emplace_back();
  effect.mutable_close_session()->set_node(node);
  effect.mutable_close_session()->set_session(session);
}

void Draft::AskPlan(v1::AskPlan ask) {
  *decision_.effects.emplace_back().mutable_ask_plan() = std::move(ask);
}

void Draft::ReplyJob(int64_t call, const JobUid& uid) {
  job_replies_.emplace_back(decision_.effects.size(), uid);
  decision_.effects.emplace_back().mutable_reply()->set_call(call);
}

void Draft::Reply(v1::ReplyCall reply) {
  *decision_.effects.emplace_back().mutable_reply() = std::move(reply);
}

void Draft::ReplyError(int64_t call, absl::StatusCode code, std::string_view reason,
                       std::string message) {
  v1::ReplyCall& reply = *decision_.effects.emplace_back().mutable_reply();
  reply.set_call(call);
  reply.set_code(static_cast<int>(code));
  reply.set_reason(reason.data(), reason.size());
  reply.set_message(std::move(message));
}

void Draft::Flush() {
  if (jobs_.empty() && nodes_.empty()) return;
  // Every durable change has a revision of its own, and the job's etag names it.
  if (meta_.revision() == state_.durable.meta.revision()) {
    EditMeta().set_revision(meta_.revision() + 1);
  }
  for (auto& [uid, job] : std::exchange(jobs_, {})) {
    job.set_etag(std::to_string(meta_.revision()));
    if (!IsQueued(job)) {
      job.clear_queue_time();
    } else if (!job.has_queue_time()) {
      *job.mutable_queue_time() = wall();
    }
    if (options().mutants.end_uncharged && IsTerminal(job.phase())) {
      job.mutable_goodput()->clear_open_time();
    }
    ChargeTime(job, state_.live.last_wall);
    v1::Mutation mutation;
    *mutation.mutable_put_job() = std::move(job);
    Mutate(std::move(mutation));
  }
  for (auto& [id, node] : std::exchange(nodes_, {})) {
    v1::Mutation mutation;
    *mutation.mutable_put_node() = std::move(node);
    Mutate(std::move(mutation));
  }
}

Decision Draft::Finish() {
  Flush();
  for (const auto& [effect, uid] : job_replies_) {
    *decision_.effects[effect].mutable_reply()->mutable_job() = state_.durable.jobs.at(uid);
  }
  if (!decision_.mutations.empty() && meta_.revision() == state_.durable.meta.revision()) {
    EditMeta().set_revision(meta_.revision() + 1);  // commands and namespaces have one too
  }
  if (meta_edited_) {
    v1::Mutation mutation;
    *mutation.mutable_put_meta() = meta_;
    Mutate(std::move(mutation));
  }
  return std::move(decision_);
}

void Draft::Mutate(v1::Mutation mutation) {
  Apply(state_, mutation);
  decision_.mutations.push_back(std::move(mutation));
}

}  // namespace mega::core
