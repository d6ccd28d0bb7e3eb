#include "coordinator/core/jobs/removal.h"

#include <algorithm>
#include <string>
#include <utility>

#include "coordinator/core/jobs/attempt.h"
#include "fmt/core.h"

namespace mega::core {
namespace {

bool IsReachable(const Draft& draft, const NodeId& id) {
  const v1::Node* node = draft.FindNode(id);
  const auto live = draft.state().live.nodes.find(id);
  return node != nullptr && node->state() == v1::NODE_STATE_READY &&
         live != draft.state().live.nodes.end() && live->second.session() != 0 &&
         !live->second.suspect();
}

// Who can carry it out: a node of the job's newest attempt, which see the same files; when none of
// these will come back, anybody. Empty: nobody now.
NodeId ChooseNode(const Draft& draft, const v1::Job* job) {
  if (job != nullptr && !job->attempts().empty()) {
    bool may_come_back = false;
    for (const v1::RankState& rank : NewestAttempt(*job).ranks()) {
      if (IsReachable(draft, rank.node())) return rank.node();
      const v1::Node* node = draft.FindNode(rank.node());
      may_come_back |= node != nullptr && node->state() != v1::NODE_STATE_LOST;
    }
    if (may_come_back) return "";
  }
  for (const auto& [id, node] : draft.state().durable.nodes) {
    if (IsReachable(draft, id)) return id;
  }
  return "";
}

// An attempt that began further back may have saved the step again, or be about to. Orders that
// name the attempt whose checkpoint they mean do no harm then.
bool IsWanted(const v1::Job& job, const v1::DeleteCheckpoint& order) {
  if (job.checkpoints().empty()) return !IsTerminal(job.phase());
  const bool is_newer = order.step() > job.checkpoints().rbegin()->step();
  return (is_newer && !IsTerminal(job.phase())) ||
         std::ranges::count(job.checkpoints(), order.step(), &v1::Manifest::step) > 0;
}

std::vector<v1::PendingCommand> RemovalsOf(const State& state, const NodeId& node) {
  std::vector<v1::PendingCommand> removals;
  for (const auto& [key, pending] : CommandsOf(state, node)) {
    if (pending.command().has_delete_checkpoint()) removals.push_back(pending);
  }
  return removals;
}

}  // namespace

NodeId RemoveCheckpoint(Draft& draft, const v1::Job& job, const v1::Manifest& manifest) {
  v1::Command command;
  v1::DeleteCheckpoint& order = *command.mutable_delete_checkpoint();
  order.set_job_uid(job.uid());
  order.set_step(manifest.step());
  order.set_directory(manifest.directory());
  if (!draft.options().mutants.remove_of_anybody) {
    order.set_attempt(manifest.attempt());
    order.set_epoch(manifest.epoch());
  }
  NodeId node = NewestAttempt(job).ranks(0).node();
  // A known node that is away gets it when it is back, or hands it over when it is lost.
  if (draft.FindNode(node) == nullptr) node = ChooseNode(draft, &job);
  if (!node.empty()) draft.AddCommand(node, std::move(command));
  return node;
}

void HandOverRemovals(Draft& draft) {
  for (const auto& [id, node] : draft.state().durable.nodes) {
    if (node.state() != v1::NODE_STATE_LOST) continue;
    for (const v1::PendingCommand& pending : RemovalsOf(draft.state(), id)) {
      const v1::DeleteCheckpoint& order = pending.command().delete_checkpoint();
      if (IsVoid(draft, order)) {
        Withdraw(draft, {id, pending.command().seq()}, order);
        continue;
      }
      const NodeId other = ChooseNode(draft, draft.FindJob(order.job_uid()));
      if (other.empty()) continue;  // nobody is there
      draft.DeleteCommand({id, pending.command().seq()});
      draft.AddCommand(other, pending.command());
    }
  }
}

bool IsVoid(const Draft& draft, const v1::DeleteCheckpoint& order) {
  if (order.epoch() != 0) return false;
  const v1::Job* job = draft.FindJob(order.job_uid());
  return job != nullptr && IsWanted(*job, order);
}

void Withdraw(Draft& draft, const CommandKey& key, const v1::DeleteCheckpoint& order) {
  draft.AddEvent(order.job_uid(), v1::SEVERITY_WARNING, "CHECKPOINT_STAYS",
                 fmt::format("node '{}' is not told any more to remove {}: the order does not say "
                             "which attempt's checkpoint it means, and the job may have saved step "
                             "{} again, or be about to",
                             key.first, order.directory(), order.step()),
                 {{"step", std::to_string(order.step())},
                  {"directory", order.directory()},
                  {"node", key.first}});
  draft.DeleteCommand(key);
}

bool HasRemovals(const State& state, const NodeId& node) {
  return std::ranges::any_of(CommandsOf(state, node), [](const auto& entry) {
    return entry.second.command().has_delete_checkpoint();
  });
}

}  // namespace mega::core
