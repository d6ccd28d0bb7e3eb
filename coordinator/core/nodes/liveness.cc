#include "coordinator/core/nodes/liveness.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "coordinator/core/jobs/attempt.h"
#include "coordinator/core/jobs/yield.h"
#include "coordinator/core/retention.h"
#include "fmt/core.h"

namespace mega::core {
namespace {

absl::Duration Horizon(const Options& options) {
  return options.mutants.give_lease_early ? options.suspect : options.lease + options.skew;
}

std::set<JobUid> JobsOn(const State& state, const NodeId& node) {
  std::set<JobUid> jobs;
  const auto owned = state.index.device_owner.find(node);
  if (owned == state.index.device_owner.end()) return jobs;
  for (const auto& [device, uid] : owned->second) jobs.insert(uid);
  return jobs;
}

// Its lease and the skew are over since it was last renewed: whatever ran there has ended.
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
  const absl::Duration silent = draft.clock() - absl::Nanoseconds(live.renewed_ns());
  const absl::Duration quiet_until = absl::Nanoseconds(live.quiet_until_ns());
  if (quiet_until > last_tick && quiet_until <= draft.clock()) draft.ClusterChanged();
  if (silent >= draft.options().suspect && !live.suspect()) {
    live.set_suspect(true);
    draft.ClusterChanged();
  }
  if (silent >= Horizon(draft.options())) LoseNode(draft, id);
}

// A rank that was told to end and has not: say it again, and say that it hangs.
void CheckStopping(Draft& draft, const v1::Job& job) {
  const absl::Duration sent = absl::Nanoseconds(draft.LiveJob(job.uid()).stop_sent_ns());
  if (draft.clock() < sent + draft.options().stop_again) return;
  draft.AddEvent(job.uid(), v1::SEVERITY_WARNING, "STOP_OVERDUE",
                 fmt::format("ranks of attempt {} have not ended {} after they were told to; their "
                             "devices stay in use until they do",
                             job.attempts().rbegin()->number(),
                             absl::FormatDuration(draft.options().stop_again)));
  SendStopRanks(draft, job, absl::ZeroDuration());
}

// Horizons count afresh: while we were away or paused, heartbeats may have gone unanswered that
// were sent in time.
void CountAfresh(Draft& draft) {
  const int64_t now = absl::ToInt64Nanoseconds(draft.clock());
  for (auto& [id, node] : draft.live().nodes) {
    node.set_renewed_ns(std::max(node.renewed_ns(), now));
  }
}

}  // namespace

void OnStarted(Draft& draft, const v1::CoreStarted& started) {
  const absl::Time wall = draft.live().last_wall;
  draft.live() = Volatile{.last_wall = wall};
  v1::Meta& meta = draft.EditMeta();
  meta.set_coordinator_epoch(std::max(meta.coordinator_epoch() + 1, started.coordinator_epoch()));
  meta.set_next_epoch(std::max<int64_t>(meta.next_epoch(), 1));
  // Workers may still hold leases of a coordinator that gave longer ones.
  const int64_t lease_ns = absl::ToInt64Nanoseconds(draft.options().lease);
  const int64_t longer_ns = std::max<int64_t>(0, meta.lease_ns() - lease_ns);
  meta.set_lease_ns(std::max(meta.lease_ns(), lease_ns));
  for (const auto& [id, node] : draft.state().durable.nodes) {
    draft.LiveNode(id).set_renewed_ns(longer_ns);
  }
  draft.ClusterChanged();
}

void OnTick(Draft& draft) {
  Volatile& live = draft.live();
  const absl::Duration last_tick = std::exchange(live.last_tick, live.clock);
  if (live.clock - last_tick > draft.options().heartbeat) CountAfresh(draft);
  if (draft.meta().lease_ns() > absl::ToInt64Nanoseconds(draft.options().lease) &&
      live.clock >= absl::Nanoseconds(draft.meta().lease_ns())) {
    draft.EditMeta().set_lease_ns(absl::ToInt64Nanoseconds(draft.options().lease));
  }
  for (const auto& [id, node] : draft.state().durable.nodes) CheckNode(draft, id, node, last_tick);
  for (const JobUid& uid : draft.state().index.ending) {
    const v1::Job& job = *draft.FindJob(uid);
    if (IsSaving(*job.attempts().rbegin())) {
      CheckSaving(draft, uid);
    } else {
      CheckStopping(draft, job);
    }
  }
  Forget(draft, last_tick);
}

void Renew(Draft& draft, const NodeId& node, int64_t seq) {
  v1::NodeLive& live = draft.LiveNode(node);
  live.set_renewed_ns(absl::ToInt64Nanoseconds(draft.clock()));
  live.set_newest_heartbeat_seq(std::max(live.newest_heartbeat_seq(), seq));
  *live.mutable_last_heartbeat() = draft.wall();
  if (live.suspect()) {
    live.set_suspect(false);
    draft.ClusterChanged();
  }
  v1::CoordinatorMessage message;
  v1::Lease& lease = *message.mutable_lease();
  lease.set_heartbeat_seq(seq);
  *lease.mutable_ttl() = ToProto(draft.options().lease);
  lease.set_session(live.session());
  *lease.mutable_outage_grace() = ToProto(draft.options().outage_grace);
  draft.Send(node, live.session(), std::move(message), /*immediate=*/true);
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
