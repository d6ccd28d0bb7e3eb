#include "coordinator/core/retention.h"

#include <vector>

#include "base/clock.h"
#include "coordinator/core/jobs/removal.h"

namespace mega::core {
namespace {

// Mutations of one tick that wait behind nothing a user asked for.
constexpr int kJobsPerTick = 20;
constexpr absl::Duration kNodesEvery = absl::Minutes(1);

void ForgetJobs(Draft& draft) {
  const Options& options = draft.options();
  const auto& ended = draft.state().index.ended;
  const absl::Time oldest = FromProto(draft.wall()) - options.job_retention;
  for (int i = 0; i < kJobsPerTick && !ended.empty(); ++i) {
    const auto& [time, uid] = *ended.begin();
    if (time > oldest && std::ssize(ended) <= options.most_ended_jobs) return;
    draft.DeleteJob(JobUid(uid));
  }
}

absl::Time LastSeen(const v1::Node& node) {
  return FromProto(node.has_last_heartbeat() ? node.last_heartbeat() : node.register_time());
}

// Nothing of it can be running. What an operator decided about it stays.
bool IsForgettable(const State& state, const v1::Node& node) {
  if (node.state() != v1::NODE_STATE_LOST || node.cordoned()) return false;
  if (state.index.device_owner.contains(node.name())) return false;
  return !HasRemovals(state, node.name());  // there is nobody to take them over
}

void ForgetNodes(Draft& draft) {
  HandOverRemovals(draft);
  const absl::Time oldest = FromProto(draft.wall()) - draft.options().node_retention;
  std::vector<NodeId> forgotten;
  for (const auto& [id, node] : draft.state().durable.nodes) {
    if (LastSeen(node) <= oldest && IsForgettable(draft.state(), node)) forgotten.push_back(id);
  }
  for (const NodeId& id : forgotten) draft.DeleteNode(id);
}

}  // namespace

void Forget(Draft& draft, absl::Duration last_tick) {
  ForgetJobs(draft);
  const auto round = [](absl::Duration clock) { return absl::Floor(clock, kNodesEvery); };
  if (round(last_tick) != round(draft.clock())) ForgetNodes(draft);
}

bool ForgetOldestNode(Draft& draft) {
  const v1::Node* oldest = nullptr;
  for (const auto& [id, node] : draft.state().durable.nodes) {
    if (!IsForgettable(draft.state(), node)) continue;
    if (oldest == nullptr || LastSeen(node) < LastSeen(*oldest)) oldest = &node;
  }
  if (oldest == nullptr) return false;
  draft.DeleteNode(NodeId(oldest->name()));
  return true;
}

}  // namespace mega::core
