#include "tests/coordinator/core/cluster.h"

#include "base/clock.h"
#include "coordinator/core/apply.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "tests/coordinator/core/checkpoint_part.h"

namespace mega::core {

Cluster::Cluster() {
  v1::CoreEvent event;
  event.mutable_started()->set_new_cluster_id("ours");
  Feed(std::move(event));
}

Cluster::~Cluster() {
  v1::CoreSnapshot believed = ToSnapshot(state), stored = ToSnapshot(shadow_);
  for (v1::CoreSnapshot* snapshot : {&believed, &stored}) {
    for (const char* live :
         {"options", "node_live", "job_live", "parts", "cluster_revision", "clock_ns",
          "last_tick_ns", "last_wall", "witness_cursor", "clock_stood_still", "watches"}) {
      snapshot->GetReflection()->ClearField(snapshot,
                                            snapshot->GetDescriptor()->FindFieldByName(live));
    }
  }
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(believed, stored));
  EXPECT_TRUE(state.index == shadow_.index);
}

Decision Cluster::Feed(v1::CoreEvent event) {
  *event.mutable_now() = ToProto(now_);
  Decision decision = Step(state, event);
  std::map<JobUid, std::string> etags;  // of changed jobs, before; empty when new
  for (const v1::Mutation& mutation : decision.mutations) {
    if (mutation.has_put_job()) {
      const JobUid& uid = mutation.put_job().uid();
      const auto before = shadow_.durable.jobs.find(uid);
      etags.emplace(uid, before == shadow_.durable.jobs.end() ? "" : before->second.etag());
    }
    Apply(shadow_, mutation);
    // A store must be able to read it again; a string cut in the middle of a character is not.
    EXPECT_TRUE(v1::Mutation().ParseFromString(mutation.SerializeAsString()))
        << mutation.ShortDebugString();
  }
  for (const auto& [uid, etag] : etags) EXPECT_NE(job(uid).etag(), etag) << uid;
  effects = decision.effects;
  for (const v1::Effect& effect : decision.effects) {
    if (effect.has_ask_plan()) asked.push_back(effect.ask_plan());
    if (effect.has_reply()) replies[effect.reply().call()] = effect.reply();
    if (effect.reply().has_job()) {
      EXPECT_EQ(effect.reply().job().etag(), job(effect.reply().job().uid()).etag());
    }
    if (effect.send().message().has_command()) {
      sent[effect.send().node()].push_back(effect.send().message().command());
    }
    if (effect.has_close_session() &&
        sessions_[effect.close_session().node()] == effect.close_session().session()) {
      sessions_.erase(effect.close_session().node());
    }
  }
  if (takes_part) AckLeases(decision);
  while (!plans_itself && !asked.empty()) AnswerPlan(asked.back());
  return decision;
}

void Cluster::AckLeases(const Decision& decision) {
  for (const v1::Effect& effect : decision.effects) {
    const NodeId& node = effect.send().node();
    if (!effect.send().message().has_lease() || mute.contains(node)) continue;
    const v1::Lease& lease = effect.send().message().lease();
    v1::WorkerMessage ack;
    if (lease.has_witnesses()) {
      held[node] = lease.witnesses();
      ack.mutable_witness_set_ack()->set_number(lease.witnesses().number());
    } else {
      ack.mutable_renewal_ack()->set_heartbeat_seq(lease.heartbeat_seq());
    }
    Say(node, std::move(ack));
  }
  effects = decision.effects;
}

void Cluster::Restart() {
  const Options options = state.options;
  state = State{.options = options, .durable = shadow_.durable, .index = shadow_.index};
  sessions_.clear();
  asked.clear();
  v1::CoreEvent event;
  event.mutable_started()->set_new_cluster_id("another");  // not taken: there is one
  Feed(std::move(event));
}

void Cluster::Run(absl::Duration span) {
  const absl::Time end = now_ + span;
  for (int64_t tick = 1; now_ < end; ++tick) {
    now_ += absl::Milliseconds(100);
    v1::CoreEvent event;
    event.mutable_tick();
    Feed(std::move(event));
    if (tick % 10 != 0) continue;
    for (const auto& [node, session] : std::map(sessions_)) {
      if (silent.contains(node)) continue;
      v1::WorkerMessage message;
      message.mutable_heartbeat()->set_seq(++seqs_[node]);
      Say(node, std::move(message));
    }
  }
}

int64_t Cluster::Hello(const NodeId& node, HelloFields fields) {
  const int64_t session = next_session_++;
  v1::WorkerMessage message;
  v1::Hello& hello = *message.mutable_hello();
  hello.mutable_node()->set_name(node);
  hello.mutable_node()->set_boot_id(fields.boot_id);
  if (!fields.state_folder.empty()) {
    hello.mutable_node()->set_state_folder_id(fields.state_folder + " of " + node);
  }
  hello.mutable_node()->set_address("address of " + node);
  if (!fields.rack.empty()) (*hello.mutable_node()->mutable_labels())["rack"] = fields.rack;
  hello.set_acked_witness_set(fields.acked_witness_set);
  hello.mutable_node()->set_incarnation(fields.incarnation);
  for (int64_t i = 0; i < fields.devices; ++i) hello.mutable_node()->add_devices()->set_index(i);
  for (const v1::RankRef& ref : fields.running) *hello.add_running() = ref;
  for (const v1::RankExited& exited : fields.exited) *hello.add_exited() = exited;
  const int64_t newest = sent[node].empty() ? 0 : sent[node].back().seq();
  hello.set_last_command_seq(fields.last_command_seq < 0 ? newest : fields.last_command_seq);
  hello.set_heartbeat_seq(++seqs_[node]);
  hello.set_cluster_id(fields.cluster_id);
  sessions_[node] = session;
  SayOn(node, session, std::move(message));
  return session;
}

void Cluster::Say(const NodeId& node, v1::WorkerMessage message) {
  SayOn(node, sessions_[node], std::move(message));
}

void Cluster::SayOn(const NodeId& node, int64_t session, v1::WorkerMessage message) {
  v1::CoreEvent event;
  event.mutable_worker()->set_node(node);
  event.mutable_worker()->set_session(session);
  *event.mutable_worker()->mutable_message() = std::move(message);
  Feed(std::move(event));
}

void Cluster::CloseSession(const NodeId& node) {
  v1::CoreEvent event;
  event.mutable_session_closed()->set_node(node);
  event.mutable_session_closed()->set_session(sessions_[node]);
  sessions_.erase(node);
  Feed(std::move(event));
}

void Cluster::AckAll(const NodeId& node) {
  for (const v1::Command& command : std::vector(sent[node])) {
    v1::WorkerMessage message;
    message.mutable_command_ack()->set_seq(command.seq());
    Say(node, std::move(message));
  }
}

int64_t Cluster::Submit(const std::string& name, int64_t ranks,
                        const std::function<void(v1::CoreSubmit&)>& edit) {
  const int64_t call = next_call_++;
  v1::CoreEvent event;
  v1::CoreSubmit& submit = *event.mutable_submit();
  submit.set_call(call);
  submit.set_uid(name);
  submit.set_request_id("request-" + name);
  submit.mutable_metadata()->set_name(name);
  submit.mutable_spec()->mutable_parallelism()->set_data_parallel_size(ranks);
  *submit.mutable_resolved_spec() = submit.spec();
  edit(submit);
  Feed(std::move(event));
  return call;
}

int64_t Cluster::Cancel(const JobUid& uid) {
  const int64_t call = next_call_++;
  v1::CoreEvent event;
  event.mutable_cancel()->set_call(call);
  event.mutable_cancel()->set_uid(uid);
  Feed(std::move(event));
  return call;
}

v1::ReplyCall Cluster::Ask(v1::CoreRequest request) {
  const int64_t call = next_call_++;
  v1::CoreEvent event;
  *event.mutable_request() = std::move(request);
  event.mutable_request()->set_call(call);
  Feed(std::move(event));
  return replies.at(call);
}

void Cluster::AnswerPlan(const v1::AskPlan& ask) {
  v1::CoreEvent event;
  v1::CorePlanMade& made = *event.mutable_plan_made();
  made.set_job_uid(ask.job_uid());
  made.set_revision(ask.revision());
  const int64_t ranks = ask.resolved_spec().parallelism().data_parallel_size();
  v1::Plan plan;
  plan.set_world_size(ranks);
  for (const v1::Node& node : ask.nodes()) {
    for (const v1::Device& device : node.devices()) {
      if (plan.ranks_size() == ranks) continue;
      v1::RankPlacement& placed = *plan.add_ranks();
      placed.set_rank(plan.ranks_size() - 1);
      placed.set_node(node.name());
      placed.set_device(device.index());
    }
  }
  if (plan.ranks_size() == ranks) {
    *made.mutable_plan() = std::move(plan);
  } else {
    made.set_error("not enough devices");
  }
  std::erase_if(asked, [&](const v1::AskPlan& other) {
    return other.job_uid() == made.job_uid() && other.revision() == made.revision();
  });
  Feed(std::move(event));
}

v1::RankRef Cluster::ref(const JobUid& uid, int64_t rank) const {
  v1::RankRef ref;
  ref.set_job_uid(uid);
  ref.set_attempt(attempt(uid).number());
  ref.set_epoch(attempt(uid).epoch());
  ref.set_rank(rank);
  return ref;
}

std::vector<std::string> Cluster::events(const JobUid& uid) const {
  std::vector<std::string> reasons;
  for (const auto& [revision, event] : state.durable.events.at(uid)) {
    reasons.push_back(event.reason());
  }
  return reasons;
}

void Cluster::Ready(const JobUid& uid) {
  const v1::Attempt newest = attempt(uid);
  for (const v1::RankState& rank : newest.ranks()) {
    v1::WorkerMessage message;
    *message.mutable_rank_ready()->mutable_rank() = ref(uid, rank.rank());
    message.mutable_rank_ready()->set_address("address of " + std::to_string(rank.rank()));
    Say(rank.node(), std::move(message));
  }
}

void Cluster::StepDone(const JobUid& uid, int64_t step) {
  v1::CoreEvent event;
  v1::StepReport& report = *event.mutable_step_report();
  report.set_job_uid(uid);
  report.set_attempt(attempt(uid).number());
  report.set_epoch(attempt(uid).epoch());
  report.set_step(step);
  report.set_loss(1.5);
  Feed(std::move(event));
}

void Cluster::Exit(const JobUid& uid, int64_t rank, int code, int signal, bool by_worker) {
  v1::WorkerMessage message;
  *message.mutable_rank_exited()->mutable_rank() = ref(uid, rank);
  message.mutable_rank_exited()->mutable_exit()->set_code(code);
  message.mutable_rank_exited()->mutable_exit()->set_signal(signal);
  message.mutable_rank_exited()->mutable_exit()->set_killed_by_worker(by_worker);
  message.mutable_rank_exited()->mutable_exit()->set_message("last words");
  Say(attempt(uid).ranks(static_cast<int>(rank)).node(), std::move(message));
}

v1::CheckpointPart Cluster::Part(const JobUid& uid, int64_t step, int64_t rank) const {
  v1::CheckpointPart part = RowPart(step, rank, attempt(uid).ranks_size());
  part.set_job_uid(uid);
  part.set_attempt(attempt(uid).number());
  part.set_epoch(attempt(uid).epoch());
  return part;
}

void Cluster::Save(const JobUid& uid, int64_t step, int64_t rank) {
  v1::WorkerMessage message;
  *message.mutable_checkpoint_part() = Part(uid, step, rank);
  Say(attempt(uid).ranks(static_cast<int>(rank)).node(), std::move(message));
}

int64_t Cluster::Count(const NodeId& node, v1::Command::KindCase kind) const {
  const auto commands = sent.find(node);
  if (commands == sent.end()) return 0;
  return std::ranges::count(commands->second, kind, &v1::Command::kind_case);
}

JobUid RunningPair(Cluster& cluster) {
  cluster.Hello("a", {.devices = 1});
  cluster.Hello("b", {.devices = 1});
  cluster.Submit("job", 2);
  cluster.AckAll("a");
  cluster.AckAll("b");
  cluster.Ready("job");
  cluster.StepDone("job", 1);
  return "job";
}

}  // namespace mega::core
