// A cluster in a test's hands: feeds the core, keeps its effects, and checks at the end that what
// the mutations say is what the core believes.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "coordinator/core/step.h"

namespace mega::core {

struct HelloFields {
  int64_t devices = 2;
  int64_t incarnation = 1;
  std::string boot_id = "boot-1";
  std::string state_folder = "folder";  // drawn by the worker; "" in release 0.1
  int64_t acked_witness_set = 0;
  std::string rack;
  std::vector<v1::RankRef> running;
  std::vector<v1::RankExited> exited;
  int64_t last_command_seq = -1;  // -1: all that was sent so far
  std::string cluster_id;         // the cluster's own is "ours"; "" in release 0.1
};

class Cluster {
 public:
  Cluster();
  ~Cluster();  // the shadow must equal the state

  State state;
  std::vector<v1::Effect> effects;                  // of the last input
  std::map<NodeId, std::vector<v1::Command>> sent;  // all commands, by node
  std::map<int64_t, v1::ReplyCall> replies;
  std::vector<v1::AskPlan> asked;  // not answered yet
  // Plans are made at once and first fit, unless a test wants to make them itself.
  bool plans_itself = false;

  Decision Feed(v1::CoreEvent event);
  void Restart();  // of the coordinator: only what is durable survives
  // Ticks every 100 ms; nodes in session heartbeat every second unless they are silent.
  void Run(absl::Duration span);
  void Pause(absl::Duration span) { now_ += span; }

  int64_t Hello(const NodeId& node, HelloFields fields = {});  // → session
  void Say(const NodeId& node, v1::WorkerMessage message);
  void SayOn(const NodeId& node, int64_t session, v1::WorkerMessage message);
  void CloseSession(const NodeId& node);
  void AckAll(const NodeId& node);

  int64_t Submit(
      const std::string& name, int64_t ranks,
      const std::function<void(v1::CoreSubmit&)>& edit = [](v1::CoreSubmit&) {});
  int64_t Cancel(const JobUid& uid);
  v1::ReplyCall Ask(v1::CoreRequest request);
  void AnswerPlan(const v1::AskPlan& ask);

  const v1::Job& job(const JobUid& uid) const { return state.durable.jobs.at(uid); }
  const v1::Attempt& attempt(const JobUid& uid) const { return *job(uid).attempts().rbegin(); }
  v1::RankRef ref(const JobUid& uid, int64_t rank) const;
  std::vector<std::string> events(const JobUid& uid) const;  // reasons, in order
  void Ready(const JobUid& uid);                             // all ranks
  void StepDone(const JobUid& uid, int64_t step);
  void Exit(const JobUid& uid, int64_t rank, int code, int signal = 0, bool by_worker = false);
  void Save(const JobUid& uid, int64_t step, int64_t rank);
  v1::CheckpointPart Part(const JobUid& uid, int64_t step, int64_t rank) const;
  int64_t Count(const NodeId& node, v1::Command::KindCase kind) const;

  std::set<NodeId> silent;  // do not heartbeat
  // Workers know of witnesses: they ack renewals and sets, but for those in `mute`.
  bool takes_part = false;
  std::set<NodeId> mute;
  std::map<NodeId, v1::WitnessSet> held;  // newest set that the node has been sent

 private:
  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  void AckLeases(const Decision& decision);

  State shadow_;
  std::map<NodeId, int64_t> sessions_;
  std::map<NodeId, int64_t> seqs_;
  int64_t next_session_ = 1;
  int64_t next_call_ = 1;
};

// A job with two ranks on nodes a and b (one device each), started, ready and stepping.
JobUid RunningPair(Cluster& cluster);

}  // namespace mega::core
