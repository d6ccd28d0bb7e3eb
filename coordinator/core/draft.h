// A decision while it is being made. Handlers read the state as drafted, change it here, and never
// otherwise: what is durable goes through mutations, so that state and store cannot part.
#pragma once

#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "coordinator/core/step.h"

namespace mega::core {

class Draft {
 public:
  // Moves the core's clock to `wall`.
  Draft(State& state, absl::Time wall);

  const State& state() const { return state_; }
  const Options& options() const { return state_.options; }
  google::protobuf::Timestamp wall() const;
  absl::Duration clock() const { return state_.live.clock; }

  // Durable records. Find gives null when there is none; Edit needs one that exists. References
  // stay valid until Flush.
  const v1::Job* FindJob(const JobUid& uid) const;
  v1::Job& EditJob(const JobUid& uid);
  void AddJob(v1::Job job);
  void DeleteJob(const JobUid& uid);  // with all that is kept of it; it has ended
  const v1::Node* FindNode(const NodeId& id) const;
  v1::Node& EditNode(const NodeId& id);
  void AddNode(v1::Node node);
  void DeleteNode(const NodeId& id);  // with its commands; nothing runs there
  const v1::Meta& meta() const { return meta_; }
  v1::Meta& EditMeta();
  void AddEvent(const JobUid& uid, v1::Severity severity, std::string_view reason,
                std::string_view message,
                std::initializer_list<std::pair<std::string_view, std::string>> fields = {});
  // Numbered, kept until acked, sent at once when the node is in session.
  void AddCommand(const NodeId& node, v1::Command command);
  void DeleteCommand(const CommandKey& key);

  void PutNamespace(v1::Namespace limits);
  void DeleteNamespace(const std::string& name);

  // What lives with the process; change it in place.
  Volatile& live() { return state_.live; }
  v1::NodeLive& LiveNode(const NodeId& id) { return state_.live.nodes[id]; }
  v1::JobLive& LiveJob(const JobUid& uid) { return state_.live.jobs[uid]; }
  // Of checkpoints of the job that are not complete, and will not be.
  void ForgetParts(const JobUid& uid);
  // What can be given to a job is different from now on.
  void ClusterChanged();

  // Effects.
  void Send(const NodeId& node, int64_t session, v1::CoordinatorMessage message, bool immediate);
  void CloseSession(const NodeId& node, int64_t session);
  void AskPlan(v1::AskPlan ask);
  void ReplyJob(int64_t call, const JobUid& uid);  // as it is when all is decided
  void Reply(v1::ReplyCall reply);                 // any other answer; `call` set
  void ReplyError(int64_t call, absl::StatusCode code, std::string_view reason,
                  std::string message);

  // Jobs edited since the last call; their attempts may have come to an end.
  std::set<JobUid> TakeTouched() { return std::exchange(touched_, {}); }
  bool HasMutations() const { return !decision_.mutations.empty(); }
  // Makes the edited records part of the state and of the decision.
  void Flush();
  Decision Finish();

 private:
  void Mutate(v1::Mutation mutation);

  State& state_;
  v1::Meta meta_;
  bool meta_edited_ = false;
  std::map<JobUid, v1::Job> jobs_;
  std::map<NodeId, v1::Node> nodes_;
  std::set<JobUid> touched_;
  std::vector<std::pair<size_t, JobUid>> job_replies_;  // by index of the effect
  Decision decision_;
};

}  // namespace mega::core
