// The one thread that owns the State. It takes inputs in order, lets the core decide, hands the
// mutations to the commit thread as a numbered batch, and carries out effects, answers and
// publications of batch n only when n is durable. Renewals (`immediate`) never wait.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "coordinator/core/step.h"
#include "coordinator/service/journal.h"
#include "coordinator/service/read_model.h"
#include "coordinator/state/commit_thread.h"
#include "mega/v1/coordinator.pb.h"

namespace mega::service {

class Loop {
 public:
  struct Options {
    size_t most_calls_waiting = 10'000;  // more are refused; workers' messages never are
    absl::Duration tick = absl::Milliseconds(100);
    std::string new_cluster_id;  // for a state folder that has none
  };
  // What effects reach. On the loop thread; none may block.
  struct Outlets {
    std::function<void(v1::SendToWorker)> send;
    std::function<void(v1::CloseSession)> close_session;
    std::function<void(v1::AskPlan)> ask_plan;
    std::function<void(const v1::StepReport&)> record_step;  // rank 0, of the job's newest attempt
    std::function<void(const v1::JobEvent&)> told_event;     // as readers get it
    // Nothing is durable any more: the process must stop.
    std::function<void(absl::Status)> failed;
    // Seconds; for the exporter.
    std::function<void(double)> measured_commit;
    std::function<void(double)> measured_lag;  // input queued → taken
  };
  using Reply = std::function<void(const v1::ReplyCall&)>;

  // `state`: loaded, options set. `journal` may be null. All outlive this.
  Loop(core::State state, state::StateStore& store, ReadModel& reads, Journal* journal,
       const Clock& clock, Options options, Outlets outlets);
  ~Loop() { Stop(); }

  // Commits what was decided, then joins. Calls still waiting are answered UNAVAILABLE; what comes
  // later is refused or dropped. Idempotent.
  void Stop();

  // A client's call. `reply` is called exactly once, on some thread, with the event's answer. False
  // (and no reply): too many wait, or the loop is stopping.
  bool Call(v1::CoreEvent event, Reply reply);
  // A worker's message, a session's end, a plan: never refused. `taken` (may be empty) is called
  // when the core has seen it; a stream reads its next message then, so each has one waiting.
  void Put(v1::CoreEvent event, std::function<void()> taken = nullptr);

 private:
  struct Input {
    v1::CoreEvent event;
    std::function<void()> taken;
    absl::Duration queued;
  };
  // What waits for a batch.
  struct Waiting {
    int64_t batch = 0;
    std::vector<v1::Effect> effects;
    Publication publication;
  };

  void Run();
  void Take(Input input);
  void RecordIfNewest(const v1::StepReport& report);
  Publication Publish(const std::vector<v1::Mutation>& mutations) const;
  Publication PublishTick();
  void Leave(std::vector<v1::Effect> effects, Publication publication);
  void ReleaseDurable(int64_t number);
  void Show(const Publication& publication);
  void CarryOut(std::vector<v1::Effect> effects);
  void Answer(const v1::ReplyCall& reply);
  absl::Time Now() const;

  state::StateStore& store_;
  ReadModel& reads_;
  Journal* const journal_;
  const Clock& clock_;
  const Options options_;
  const Outlets outlets_;
  // Wall time that nobody can set back: wall at start plus boot time since.
  const absl::Time wall_at_start_;
  const absl::Duration boot_at_start_;

  Mutex mu_;
  CondVar wake_;
  std::deque<Input> inputs_ MEGA_GUARDED_BY(mu_);
  std::deque<Input> calls_ MEGA_GUARDED_BY(mu_);
  std::map<int64_t, Reply> replies_ MEGA_GUARDED_BY(mu_);
  int64_t last_call_ MEGA_GUARDED_BY(mu_) = 0;
  int64_t durable_ MEGA_GUARDED_BY(mu_) = 0;  // newest batch on the disk
  bool stop_ MEGA_GUARDED_BY(mu_) = false;

  // Of the loop thread alone.
  core::State state_;
  int64_t batch_ = 0;     // newest batch handed out
  int64_t released_ = 0;  // newest batch whose effects have left
  std::deque<Waiting> waiting_;
  bool queue_changed_ = true;
  absl::Duration nodes_published_;

  std::unique_ptr<state::CommitThread> commits_;
  std::jthread thread_;  // last: starts when the rest is there
};

}  // namespace mega::service
