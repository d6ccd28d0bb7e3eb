#include "coordinator/core/nodes/liveness.h"

#include <algorithm>
#include <ranges>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "coordinator/core/health/watch.h"
#include "coordinator/core/jobs/attempt.h"
#include "coordinator/core/jobs/time_limit.h"
#include "coordinator/core/jobs/yield.h"
#include "coordinator/core/nodes/witnesses.h"
#include "coordinator/core/retention.h"
#include "fmt/core.h"

namespace mega::core {
namespace {

// From the last renewal sent to the certain end of what runs by it alone. Workers may still hold
// the lease of a coordinator that gave longer ones.
absl::Duration LeaseHorizon(const Draft& draft) {
  const Options& options = draft.options();
  if (options.mutants.give_lease_early) return options.suspect;
  const absl::Duration skew = options.mutants.no_skew ? absl::ZeroDuration() : options.skew;
  return std::max(options.lease, absl::Nanoseconds(draft.meta().lease_ns())) + skew;
}

// Added when a majority of witnesses may have told it to run on.
absl::Duration OutageHorizon(const Draft& draft) {
  const absl::Duration grace =
      std::max(draft.options().outage_grace, absl::Nanoseconds(draft.meta().outage_grace_ns()));
  return draft.options().mutants.grace_cut_short ? grace / 2 : grace;
}

// Nothing that may run on the node is left, or could have outlived the lease. (Witnesses answer
// about times past, so it counts since when a majority has been in session, not only that it is.)
bool IsOver(const Draft& draft, const NodeId& id, const v1::Node& node, absl::Duration renewed) {
  const absl::Duration lease = LeaseHorizon(draft);
  if (draft.clock() < renewed + lease) return false;
  if (draft.options().mutants.ignore_witnesses) return true;
  if (draft.clock() >= renewed + lease + OutageHorizon(draft)) return true;
  const bool runs_nothing = !draft.state().index.device_owner.contains(id) ||
                            node.state() == v1::NODE_STATE_DRAINING;  // it has said goodbye
  if (runs_nothing) return true;
  const auto since = InSessionSince(draft, node);
  return since && draft.clock() >= *since + lease;
}

// Whatever ran there has ended.
void LoseNode(Draft& draft, const NodeId& id) {
  v1::NodeLive& live = draft.LiveNode(id);
  // What it still has to say was said in a lease that is over; it must come back with a hello.
  if (live.session() != 0) draft.CloseSession(id, live.session());
  live.set_session(0);
  live.set_suspect(true);
  live.clear_unwanted();
  v1::Node& node = draft.EditNode(id);
  node.set_state(v1::NODE_STATE_LOST);
  *node.mutable_last_heartbeat() =
      live.has_last_heartbeat() ? live.last_heartbeat() : draft.wall();  // it is forgotten later
  draft.ClusterChanged();
  for (const JobUid& uid : JobsOn(draft.state(), id)) {
    LoseRanks(draft, draft.EditJob(uid), id,
              fmt::format("not heard of for a lease ({}) and more",
                          absl::FormatDuration(draft.options().lease)));
  }
}

void CheckNode(Draft& draft, const NodeId& id, const v1::Node& node, absl::Duration last_tick) {
  if (node.state() == v1::NODE_STATE_LOST) return;
  v1::NodeLive& live = draft.LiveNode(id);
  const absl::Duration renewed = absl::Nanoseconds(live.renewed_ns());
  const absl::Duration silent = draft.clock() - renewed;
  const absl::Duration quiet_until = absl::Nanoseconds(live.quiet_until_ns());
  if (quiet_until > last_tick && quiet_until <= draft.clock()) draft.ClusterChanged();
  if (silent >= draft.options().suspect && !live.suspect()) {
    live.set_suspect(true);
    draft.ClusterChanged();
  }
  if (IsOver(draft, id, node, renewed)) LoseNode(draft, id);
}

// A rank that was told to end and has not: say it again, and say that it hangs.
void CheckStopping(Draft& draft, const v1::Job& job) {
  const absl::Duration sent = absl::Nanoseconds(draft.LiveJob(job.uid()).stop_sent_ns());
  if (draft.clock() < sent + draft.options().stop_again) return;
  draft.AddEvent(
      job.uid(), v1::SEVERITY_WARNING, "STOP_OVERDUE",
      fmt::format("ranks of attempt {} have not ended {} after they were told to; their "
                  "devices stay in use until they do",
                  NewestAttempt(job).number(), absl::FormatDuration(draft.options().stop_again)));
  SendStopRanks(draft, job, absl::ZeroDuration());
}

// Horizons count afresh: while we were away or paused, heartbeats may have gone unanswered that
// were sent in time.
void CountAfresh(Draft& draft) {
  if (draft.options().mutants.pause_not_counted) return;
  const int64_t now = absl::ToInt64Nanoseconds(draft.clock());
  for (auto& [id, node] : draft.live().nodes) {
    node.set_renewed_ns(std::max(node.renewed_ns(), now));
    // Time went by that our clock has not seen: acks may lie further apart than they seem to.
    if (draft.live().clock_stood_still) node.set_acks(false);
  }
}

// Longer leases of an earlier coordinator count until no worker can hold one.
void ForgetLongerLeases(Draft& draft) {
  const v1::Meta& meta = draft.meta();
  const int64_t lease_ns = absl::ToInt64Nanoseconds(draft.options().lease);
  const int64_t grace_ns = absl::ToInt64Nanoseconds(draft.options().outage_grace);
  if (meta.lease_ns() <= lease_ns && meta.outage_grace_ns() <= grace_ns) return;
  if (draft.clock() < absl::Nanoseconds(meta.lease_ns())) return;
  for (const auto& [id, node] : draft.state().durable.nodes) {
    const v1::NodeLive& live = draft.LiveNode(id);
    const bool is_renewed =
        live.acks() || (live.newest_session() != 0 && node.witness_sets().empty());
    if (node.state() == v1::NODE_STATE_READY && !is_renewed) return;
  }
  draft.EditMeta().set_lease_ns(lease_ns);
  draft.EditMeta().set_outage_grace_ns(grace_ns);
}

}  // namespace

void OnStarted(Draft& draft, const v1::CoreStarted& started) {
  // Nothing of the process before lives on, but for how far attempts have come: the shell has found
  // that in the step history.
  Volatile fresh{.last_wall = draft.live().last_wall};
  for (v1::JobLive& job : draft.live().jobs | std::views::values) {
    if (job.newest().step() == 0) continue;
    const JobUid uid = job.newest().job_uid();
    *fresh.jobs[uid].mutable_newest() = std::move(*job.mutable_newest());
  }
  draft.live() = std::move(fresh);
  v1::Meta& meta = draft.EditMeta();
  meta.set_coordinator_epoch(std::max(meta.coordinator_epoch() + 1, started.coordinator_epoch()));
  meta.set_next_epoch(std::max<int64_t>(meta.next_epoch(), 1));
  if (meta.cluster_id().empty()) meta.set_cluster_id(started.new_cluster_id());
  meta.set_lease_ns(std::max(meta.lease_ns(), absl::ToInt64Nanoseconds(draft.options().lease)));
  meta.set_outage_grace_ns(
      std::max(meta.outage_grace_ns(), absl::ToInt64Nanoseconds(draft.options().outage_grace)));
  for (const auto& [id, node] : draft.state().durable.nodes) {
    v1::NodeLive& live = draft.LiveNode(id);  // renewed now: the clock starts at 0
    if (draft.options().mutants.start_not_counted) {
      live.set_renewed_ns(-absl::ToInt64Nanoseconds(2 * draft.options().lease));
    }
  }
  for (const JobUid& uid : draft.state().index.unfinished) {
    const v1::Job& job = *draft.FindJob(uid);
    if (LiveAttempt(job) != nullptr) WatchAttempt(draft, job);
  }
  draft.ClusterChanged();
}

void OnTick(Draft& draft) {
  Volatile& live = draft.live();
  const absl::Duration last_tick = std::exchange(live.last_tick, live.clock);
  if (live.clock - last_tick > draft.options().heartbeat || live.clock_stood_still) {
    CountAfresh(draft);
    CountWatchesAfresh(draft);
  }
  live.clock_stood_still = false;
  ForgetLongerLeases(draft);
  for (const auto& [id, node] : draft.state().durable.nodes) CheckNode(draft, id, node, last_tick);
  CheckWatches(draft);
  AssignWitnesses(draft);
  for (const JobUid& uid : draft.state().index.ending) {
    const v1::Job& job = *draft.FindJob(uid);
    if (IsSaving(NewestAttempt(job))) {
      CheckSaving(draft, uid);
    } else {
      CheckStopping(draft, job);
    }
  }
  for (const JobUid& uid : draft.state().index.timed) CheckTimeLimit(draft, uid);
  Forget(draft, last_tick);
}

void FillLease(const Draft& draft, int64_t seq, int64_t session, v1::Lease* lease) {
  lease->set_heartbeat_seq(seq);
  *lease->mutable_ttl() = ToProto(draft.options().lease);
  lease->set_session(session);
  *lease->mutable_outage_grace() = ToProto(draft.options().outage_grace);
}

void Renew(Draft& draft, const NodeId& node, int64_t seq, bool is_hello) {
  v1::NodeLive& live = draft.LiveNode(node);
  live.set_renewed_ns(absl::ToInt64Nanoseconds(draft.clock()));
  const bool is_new = seq > live.newest_heartbeat_seq();  // else a copy; it proves nothing new
  live.set_newest_heartbeat_seq(std::max(live.newest_heartbeat_seq(), seq));
  *live.mutable_last_heartbeat() = draft.wall();
  if (live.suspect()) {
    live.set_suspect(false);
    draft.ClusterChanged();
    CountWatchesAfresh(draft, node);
  }
  v1::CoordinatorMessage message;
  FillLease(draft, seq, live.session(), message.mutable_lease());
  if (is_hello) message.mutable_lease()->set_cluster_id(draft.meta().cluster_id());
  draft.Send(node, live.session(), std::move(message), /*immediate=*/true);
  if (is_new) NoteRenewal(draft, node, seq);
  SendWitnesses(draft, node);
}

void OnHeartbeat(Draft& draft, const NodeId& node, const v1::Heartbeat& heartbeat) {
  Renew(draft, node, heartbeat.seq());
}

void OnCommandAck(Draft& draft, const NodeId& node, int64_t seq) {
  if (draft.state().durable.commands.contains({node, seq})) draft.DeleteCommand({node, seq});
  const v1::Node& known = *draft.FindNode(node);
  if (seq <= known.acked_command_seq() || seq > known.last_command_seq()) return;
  draft.EditNode(node).set_acked_command_seq(seq);
}

void OnGoodbye(Draft& draft, const NodeId& node, const v1::Goodbye& goodbye) {
  draft.EditNode(node).set_state(v1::NODE_STATE_DRAINING);
  draft.LiveNode(node).clear_unwanted();
  draft.ClusterChanged();
  for (const JobUid& uid : JobsOn(draft.state(), node)) {
    LoseRanks(draft, draft.EditJob(uid), node,
              fmt::format("its worker left ({})", goodbye.reason()));
  }
}

void OnSessionClosed(Draft& draft, const v1::CoreSessionClosed& closed) {
  const auto live = draft.live().nodes.find(closed.node());
  if (live == draft.live().nodes.end() || live->second.session() != closed.session()) return;
  live->second.set_session(0);
  draft.ClusterChanged();
}

void ForgetUnwanted(Draft& draft, const NodeId& node, const v1::RankRef& rank) {
  auto& unwanted = *draft.LiveNode(node).mutable_unwanted();
  const auto end = std::remove_if(unwanted.begin(), unwanted.end(), [&](const v1::RankRef& ref) {
    return ref.job_uid() == rank.job_uid() && ref.attempt() == rank.attempt() &&
           ref.epoch() == rank.epoch() && ref.rank() == rank.rank();
  });
  if (end == unwanted.end()) return;
  unwanted.erase(end, unwanted.end());
  if (unwanted.empty()) draft.ClusterChanged();
}

}  // namespace mega::core
