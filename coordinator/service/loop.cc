#include "coordinator/service/loop.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "base/log.h"
#include "coordinator/core/jobs/attempt.h"
#include "coordinator/core/queue/quota.h"

namespace mega::service {
namespace {

// Client calls between two looks at the workers' queue: a flood of one never starves the other.
constexpr size_t kCallsPerRound = 64;
// Heartbeat ages and suspicion, as readers see them, are this old at most.
constexpr absl::Duration kNodesPublished = absl::Seconds(1);

v1::ReplyCall Unavailable(int64_t call) {
  v1::ReplyCall reply;
  reply.set_call(call);
  reply.set_code(static_cast<int>(absl::StatusCode::kUnavailable));
  reply.set_reason("STOPPING");
  reply.set_message("the coordinator is stopping; try again");
  return reply;
}

}  // namespace

Loop::Loop(core::State state, state::StateStore& store, ReadModel& reads, Journal* journal,
           const Clock& clock, Options options, Outlets outlets)
    : store_(store),
      reads_(reads),
      journal_(journal),
      clock_(clock),
      options_(std::move(options)),
      outlets_(std::move(outlets)),
      wall_at_start_(clock.WallNow()),
      boot_at_start_(clock.BootNow()),
      state_(std::move(state)),
      nodes_published_(clock.BootNow()) {
  commits_ = std::make_unique<state::CommitThread>(store_, state::CommitThread::Callbacks{
                                                               .durable =
                                                                   [this](int64_t number) {
                                                                     MutexLock lock(mu_);
                                                                     durable_ = number;
                                                                     wake_.NotifyOne();
                                                                   },
                                                               .failed = outlets_.failed,
                                                               .measured = outlets_.measured_commit,
                                                           });
  v1::CoreEvent started;
  started.mutable_started()->set_coordinator_epoch(state_.durable.meta.coordinator_epoch() + 1);
  if (state_.durable.meta.cluster_id().empty()) {
    started.mutable_started()->set_new_cluster_id(options_.new_cluster_id);
  }
  inputs_.push_back({std::move(started), nullptr, clock_.BootNow()});
  thread_ = std::jthread([this] { Run(); });
}

void Loop::Stop() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(mu_);
    stop_ = true;
    wake_.NotifyOne();
  }
  thread_.join();
  commits_.reset();
  std::map<int64_t, Reply> left;
  {
    MutexLock lock(mu_);
    left.swap(replies_);
  }
  for (auto& [call, reply] : left) reply(Unavailable(call));
}

absl::Time Loop::Now() const { return wall_at_start_ + (clock_.BootNow() - boot_at_start_); }

bool Loop::Call(v1::CoreEvent event, Reply reply) {
  MutexLock lock(mu_);
  if (stop_ || calls_.size() >= options_.most_calls_waiting) return false;
  const int64_t call = ++last_call_;
  if (event.has_submit()) event.mutable_submit()->set_call(call);
  if (event.has_cancel()) event.mutable_cancel()->set_call(call);
  if (event.has_request()) event.mutable_request()->set_call(call);
  replies_[call] = std::move(reply);
  calls_.push_back({std::move(event), nullptr, clock_.BootNow()});
  wake_.NotifyOne();
  return true;
}

void Loop::Put(v1::CoreEvent event, std::function<void()> taken) {
  MutexLock lock(mu_);
  if (stop_) return;
  inputs_.push_back({std::move(event), std::move(taken), clock_.BootNow()});
  wake_.NotifyOne();
}

void Loop::Run() {
  absl::Duration next_tick = clock_.BootNow();
  while (true) {
    std::deque<Input> inputs;
    int64_t durable = 0;
    {
      MutexLock lock(mu_);
      while (!stop_ && inputs_.empty() && calls_.empty() && durable_ == released_) {
        const absl::Duration left = next_tick - clock_.BootNow();
        if (left <= absl::ZeroDuration()) break;
        wake_.WaitFor(mu_, absl::ToChronoNanoseconds(left));
      }
      if (stop_) return;
      inputs.swap(inputs_);
      for (size_t i = 0; i < kCallsPerRound && !calls_.empty(); ++i) {
        inputs.push_back(std::move(calls_.front()));
        calls_.pop_front();
      }
      durable = durable_;
    }
    ReleaseDurable(durable);
    for (Input& input : inputs) Take(std::move(input));
    if (const absl::Duration now = clock_.BootNow(); now >= next_tick) {
      next_tick = now + options_.tick;
      v1::CoreEvent tick;
      tick.mutable_tick();
      Take({std::move(tick), nullptr, now});
      Leave({}, PublishTick());
    }
  }
}

void Loop::Take(Input input) {
  v1::CoreEvent& event = input.event;
  outlets_.measured_lag(absl::ToDoubleSeconds(clock_.BootNow() - input.queued));
  *event.mutable_now() = ToProto(Now());
  if (journal_ != nullptr && journal_->WantsSnapshot()) {
    journal_->StartSegment(core::ToSnapshot(state_));
  }
  core::Decision decision = core::Step(state_, event);
  if (journal_ != nullptr) journal_->Append(event, DecisionHash(decision));
  if (event.has_step_report()) RecordIfNewest(event.step_report());
  if (input.taken) input.taken();

  std::vector<v1::Effect> at_once;
  std::vector<v1::Effect> later;
  for (v1::Effect& effect : decision.effects) {
    (effect.immediate() ? at_once : later).push_back(std::move(effect));
  }
  CarryOut(std::move(at_once));
  Publication publication;
  if (!decision.mutations.empty()) {
    publication = Publish(decision.mutations);
    commits_->Submit(++batch_, std::move(decision.mutations));
  }
  Leave(std::move(later), std::move(publication));
}

void Loop::RecordIfNewest(const v1::StepReport& report) {
  // Reports travel on a stream of their own: the last ones may come after the exits that ended the
  // attempt, and belong to its history all the same.
  const auto it = state_.durable.jobs.find(report.job_uid());
  if (report.rank() != 0 || !core::IsStep(report.step()) || it == state_.durable.jobs.end() ||
      it->second.attempts().empty()) {
    return;
  }
  const v1::Attempt& newest = core::NewestAttempt(it->second);
  if (newest.number() == report.attempt() && newest.epoch() == report.epoch()) {
    outlets_.record_step(report);
  }
}

Publication Loop::Publish(const std::vector<v1::Mutation>& mutations) const {
  Publication out;
  std::set<core::JobUid> jobs;
  std::set<core::NodeId> nodes;
  for (const v1::Mutation& mutation : mutations) {
    switch (mutation.kind_case()) {
      case v1::Mutation::kPutJob:
        jobs.insert(mutation.put_job().uid());
        break;
      case v1::Mutation::kPutNode:
        nodes.insert(mutation.put_node().name());
        break;
      case v1::Mutation::kDeleteNode:
        out.deleted_nodes.push_back(mutation.delete_node());
        break;
      case v1::Mutation::kPutEvent:
        out.events.push_back(std::make_shared<v1::JobEvent>(mutation.put_event()));
        break;
      case v1::Mutation::kDeleteJob:
        out.deleted_jobs.push_back(mutation.delete_job());
        break;
      case v1::Mutation::kPutNamespace:
      case v1::Mutation::kDeleteNamespace:
        out.namespaces = core::NamespaceViews(state_);
        break;
      case v1::Mutation::kPutMeta:
        out.revision = mutation.put_meta().revision();
        break;
      default:
        break;
    }
  }
  for (const core::JobUid& uid : jobs) {
    if (!state_.durable.jobs.contains(uid)) continue;
    out.jobs.push_back(std::make_shared<v1::Job>(core::JobView(state_, uid)));
  }
  for (const core::NodeId& id : nodes) {
    if (!state_.durable.nodes.contains(id)) continue;
    out.nodes.push_back(std::make_shared<v1::Node>(core::NodeView(state_, id)));
  }
  return out;
}

Publication Loop::PublishTick() {
  Publication out;
  if (std::exchange(queue_changed_, false)) {
    out.namespaces = core::NamespaceViews(state_);
    int64_t position = 0;
    auto& queue = out.queue.emplace();
    for (const core::QueueKey& key : state_.index.queue) {
      queue[std::get<core::JobUid>(key)] = ++position;
    }
  }
  if (const absl::Duration now = clock_.BootNow(); now - nodes_published_ >= kNodesPublished) {
    nodes_published_ = now;
    for (const auto& [id, node] : state_.durable.nodes) {
      out.nodes.push_back(std::make_shared<v1::Node>(core::NodeView(state_, id)));
    }
  }
  return out;
}

void Loop::Leave(std::vector<v1::Effect> effects, Publication publication) {
  if (!publication.jobs.empty()) queue_changed_ = true;
  if (effects.empty() && publication.empty()) return;
  if (released_ == batch_) {  // nothing is on its way to the disk
    Show(publication);
    CarryOut(std::move(effects));
    return;
  }
  waiting_.push_back({batch_, std::move(effects), std::move(publication)});
}

void Loop::Show(const Publication& publication) {
  reads_.Publish(publication);
  for (const auto& event : publication.events) outlets_.told_event(*event);
}

void Loop::ReleaseDurable(int64_t number) {
  while (!waiting_.empty() && waiting_.front().batch <= number) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    // Readers first: who is told of a change must be able to read it.
    Show(next.publication);
    CarryOut(std::move(next.effects));
  }
  released_ = number;
}

void Loop::CarryOut(std::vector<v1::Effect> effects) {
  for (v1::Effect& effect : effects) {
    switch (effect.kind_case()) {
      case v1::Effect::kSend:
        outlets_.send(std::move(*effect.mutable_send()));
        break;
      case v1::Effect::kAskPlan:
        outlets_.ask_plan(std::move(*effect.mutable_ask_plan()));
        break;
      case v1::Effect::kReply:
        Answer(effect.reply());
        break;
      case v1::Effect::kCloseSession:
        outlets_.close_session(std::move(*effect.mutable_close_session()));
        break;
      case v1::Effect::KIND_NOT_SET:
        break;
    }
  }
}

void Loop::Answer(const v1::ReplyCall& answer) {
  Reply reply;
  {
    MutexLock lock(mu_);
    const auto it = replies_.find(answer.call());
    if (it == replies_.end()) return;
    reply = std::move(it->second);
    replies_.erase(it);
  }
  reply(answer);
}

}  // namespace mega::service
