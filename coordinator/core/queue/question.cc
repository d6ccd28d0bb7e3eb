#include "coordinator/core/queue/question.h"

#include <utility>

#include "coordinator/core/recovery/resize.h"

namespace mega::core {

void PutQuestion(Draft& draft, const v1::Job& job, Question question,
                 const std::vector<v1::Node>& nodes) {
  v1::JobLive& live = draft.LiveJob(job.uid());
  if (question != Question::kVictims) live.set_nodes_asked(NodesToAsk(draft, job));
  live.set_ask_revision(ToRevision(question, draft.state().live.cluster_revision));
  live.set_asked_ns(absl::ToInt64Nanoseconds(draft.clock()));
  v1::AskPlan ask;
  ask.set_job_uid(job.uid());
  ask.set_revision(live.ask_revision());
  *ask.mutable_resolved_spec() = SpecFor(job, live.nodes_asked());
  *ask.mutable_nodes() = {nodes.begin(), nodes.end()};
  draft.AskPlan(std::move(ask));
}

bool IsAsked(Draft& draft, v1::JobLive& live) {
  if (live.ask_revision() == 0) return false;
  const absl::Duration asked = absl::Nanoseconds(live.asked_ns());
  if (draft.clock() < asked + draft.options().plan_timeout) return true;
  live.set_ask_revision(0);
  ForgetRefusal(live);
  return false;
}

bool IsDue(const Draft& draft, const v1::JobLive& live) {
  return live.ask_again_ns() != 0 && absl::Nanoseconds(live.ask_again_ns()) <= draft.clock();
}

void AskAgainWithin(const Draft& draft, v1::JobLive& live, absl::Duration span) {
  const int64_t then = absl::ToInt64Nanoseconds(draft.clock() + span);
  if (live.ask_again_ns() == 0 || live.ask_again_ns() > then) live.set_ask_again_ns(then);
}

}  // namespace mega::core
