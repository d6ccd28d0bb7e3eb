// One input in, one decision out: the handler of the input's kind, then what follows from it for
// attempts that came to their end, then what the queue can do with the devices there are now.
#include "coordinator/core/step.h"

#include "base/clock.h"
#include "coordinator/core/draft.h"
#include "coordinator/core/health/findings.h"
#include "coordinator/core/health/watch.h"
#include "coordinator/core/jobs/attempt.h"
#include "coordinator/core/jobs/cancel.h"
#include "coordinator/core/jobs/checkpoint.h"
#include "coordinator/core/jobs/submit.h"
#include "coordinator/core/nodes/hello.h"
#include "coordinator/core/nodes/liveness.h"
#include "coordinator/core/nodes/witnesses.h"
#include "coordinator/core/queue/queue.h"
#include "coordinator/core/requests.h"

namespace mega::core {
namespace {

void OnWorker(Draft& draft, const v1::CoreWorker& from) {
  const v1::WorkerMessage& message = from.message();
  if (message.has_hello()) return OnHello(draft, from.node(), from.session(), message.hello());
  // A session that was replaced, or closed for silence, has no say any more.
  const auto live = draft.state().live.nodes.find(from.node());
  if (from.session() == 0 || live == draft.state().live.nodes.end() ||
      live->second.session() != from.session()) {
    return;
  }
  switch (message.kind_case()) {
    case v1::WorkerMessage::kHeartbeat:
      return OnHeartbeat(draft, from.node(), message.heartbeat());
    case v1::WorkerMessage::kCommandAck:
      return OnCommandAck(draft, from.node(), message.command_ack().seq());
    case v1::WorkerMessage::kRankReady:
      return OnRankReady(draft, from.node(), message.rank_ready());
    case v1::WorkerMessage::kRankExited:
      return OnRankExited(draft, from.node(), message.rank_exited());
    case v1::WorkerMessage::kCheckpointPart:
      return OnCheckpointPart(draft, from.node(), message.checkpoint_part());
    case v1::WorkerMessage::kCheckpointFailed:
      return OnCheckpointFailed(draft, from.node(), message.checkpoint_failed());
    case v1::WorkerMessage::kGoodbye:
      return OnGoodbye(draft, from.node(), message.goodbye());
    case v1::WorkerMessage::kRenewalAck:
      return OnRenewalAck(draft, from.node(), message.renewal_ack().heartbeat_seq());
    case v1::WorkerMessage::kWitnessSetAck:
      return OnWitnessSetAck(draft, from.node(), message.witness_set_ack().number());
    case v1::WorkerMessage::kRankProgress:
      return OnRankProgress(draft, from.node(), message.rank_progress());
    case v1::WorkerMessage::kNodeFindings:
      return SetProbeFindings(draft, from.node(), message.node_findings().findings());
    case v1::WorkerMessage::kRelayedHeartbeat:
      return OnRelayedHeartbeat(draft, from.node(), message.relayed_heartbeat());
    default:
      return;
  }
}

void Handle(Draft& draft, const v1::CoreEvent& event) {
  switch (event.kind_case()) {
    case v1::CoreEvent::kStarted:
      return OnStarted(draft, event.started());
    case v1::CoreEvent::kTick:
      return OnTick(draft);
    case v1::CoreEvent::kSubmit:
      return Submit(draft, event.submit());
    case v1::CoreEvent::kCancel:
      return Cancel(draft, event.cancel());
    case v1::CoreEvent::kWorker:
      return OnWorker(draft, event.worker());
    case v1::CoreEvent::kSessionClosed:
      return OnSessionClosed(draft, event.session_closed());
    case v1::CoreEvent::kPlanMade:
      return OnPlanMade(draft, event.plan_made());
    case v1::CoreEvent::kStepReport:
      return OnStepReport(draft, event.step_report());
    case v1::CoreEvent::kRequest:
      return OnRequest(draft, event.request());
    case v1::CoreEvent::KIND_NOT_SET:
      return;
  }
}

}  // namespace

Decision Step(State& state, const v1::CoreEvent& event) {
  Draft draft(state, FromProto(event.now()));
  const int64_t cluster_revision = state.live.cluster_revision;
  Handle(draft, event);
  SettleAttempts(draft);
  draft.Flush();
  // Most inputs are heartbeats and reports; they concern the queue not at all.
  if (event.has_tick() || event.has_plan_made() || draft.HasMutations() ||
      state.live.cluster_revision != cluster_revision) {
    Schedule(draft);
  }
  return draft.Finish();
}

}  // namespace mega::core
