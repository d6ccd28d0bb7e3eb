#include "coordinator/core/waiting.h"

#include <algorithm>

#include "coordinator/core/jobs/attempt.h"
#include "coordinator/core/queue/question.h"
#include "coordinator/core/queue/queue.h"
#include "coordinator/core/queue/quota.h"
#include "coordinator/core/queue/unfit.h"
#include "fmt/core.h"

namespace mega::core {
namespace {

// Ranks end with an exit, a hello, or their node's horizon; a node in neither has lost them
// already.
std::string WaitingForRanks(const State& state, const v1::Attempt& attempt) {
  int64_t alive = 0;
  for (const v1::RankState& rank : attempt.ranks()) {
    if (!MayRun(rank)) continue;
    ++alive;
    const auto node = state.durable.nodes.find(rank.node());
    const bool is_watched = node != state.durable.nodes.end() &&
                            node->second.state() != v1::NODE_STATE_LOST &&
                            state.live.nodes.contains(rank.node());
    if (!is_watched) return "";
  }
  return alive == 0 ? "" : fmt::format("{} ranks that may be running", alive);
}

// The planner is asked about one unfit job at a time, and so many are looked at in one step.
bool AreOthersLookedAt(const State& state) {
  size_t unfit = 0;
  for (const QueueKey& key : state.index.queue) {
    const JobUid& uid = std::get<JobUid>(key);
    const auto live = state.live.jobs.find(uid);
    if (live != state.live.jobs.end() && IsAskedIdle(live->second)) return true;
    if (IsUnfit(state, uid) && ++unfit > kLooksAtOnce) return true;
  }
  return false;
}

}  // namespace

std::string WaitingFor(const State& state, const JobUid& uid) {
  const v1::Job& job = state.durable.jobs.at(uid);
  if (IsTerminal(job.phase())) return "";
  if (const v1::Attempt* attempt = LiveAttempt(job)) return WaitingForRanks(state, *attempt);
  if (job.phase() == v1::JOB_PHASE_PAUSED) return "somebody who resumes it";
  const auto live = state.live.jobs.find(uid);
  if (!OverQuota(state, job).empty()) return "its namespace, which holds its quota";
  for (const QueueKey& key : state.index.queue) {
    const JobUid& before = std::get<JobUid>(key);
    if (before == uid) break;
    if (!IsPassed(state, before)) {
      return fmt::format("job {}, which is before it in the queue", before);
    }
  }
  if (IsUnfit(state, uid)) {
    const bool is_known = UnfitAt(live->second) == state.live.cluster_revision;
    const absl::Duration again = absl::Nanoseconds(live->second.asked_ns()) + kLooksAgain;
    const bool is_looked_at = live->second.ask_revision() != 0 || again > state.live.last_tick;
    if (is_known || is_looked_at) return "another fleet";
    return AreOthersLookedAt(state) ? "its turn to be looked at again" : "";
  }
  if (live == state.live.jobs.end()) return "";
  // The first tick after its end takes it up.
  if (absl::Nanoseconds(live->second.not_before_ns()) > state.live.last_tick) return "its back-off";
  if (live->second.ask_revision() != 0) return "its plan";
  // Any change of the cluster raises the revision, and then it is asked for again.
  if (RefusedAt(live->second) == state.live.cluster_revision) return "devices";
  return "";
}

}  // namespace mega::core
