// What was done about a job's failures of late, and how much of its budgets that has used up.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "coordinator/core/state.h"

namespace mega::core {

// Rungs of the ladder.
inline constexpr std::string_view kRetry = "retry";    // the same nodes
inline constexpr std::string_view kSpare = "spare";    // the node to blame is left out
inline constexpr std::string_view kShrink = "shrink";  // fewer nodes
inline constexpr std::string_view kStop = "stop";
// Changes of size, which follow no failure.
inline constexpr std::string_view kGrow = "grow";
inline constexpr std::string_view kScale = "scale";
// Back to an older checkpoint, because a user wants it so.
inline constexpr std::string_view kRollBack = "roll_back";

// A budget and what is used of it. `limit` < 0: there is none.
struct Budget {
  int64_t used = 0;
  int64_t limit = -1;
  bool is_used_up() const { return limit >= 0 && used >= limit; }
};

// Span in which all of these count: recovery.budgets.window.
absl::Duration RecoveryWindow(const v1::Job& job);
Budget RestartBudget(const v1::Job& job, absl::Time now);  // recovery.max_restarts
Budget CycleBudget(const v1::Job& job);                    // recovery.no_progress_cycles
Budget RungBudget(const v1::Job& job, std::string_view rung, absl::Time now);
// Failures blamed on the node.
int64_t CountFailures(const v1::Job& job, const NodeId& node, absl::Time now);
// Nodes that the job is not to be placed on. by_rule: only those that a rule of it named; the
// others are taken again when nothing else has room.
std::set<NodeId> LeftOut(const v1::Job& job, absl::Time now, bool by_rule = false);
// "; node 'b' is left out (recovery.rules[0] 'exit 7 -> spare')" about those that are not taken
// again: why the job waits though there is room. Empty without any.
std::string LeftOutText(const v1::Job& job, absl::Time now);
// When the first of them may be taken again; InfiniteFuture without any.
absl::Time LeftOutUntil(const v1::Job& job, absl::Time now);

// Adds the record; forgets what no budget counts any more.
void AddRecord(v1::Job& job, v1::RecoveryRecord record, absl::Time now);
// The newest record but for those of going back, which say nothing about nodes; null without one.
const v1::RecoveryRecord* NewestDecision(const v1::Job& job);
// The record of what led to the newest attempt; null if it follows no failure.
v1::RecoveryRecord* FindRecord(v1::Job& job);
// The newest attempt has its nodes.
void NotePlacement(v1::Job& job);

// All budgets, for people.
void ShowBudgets(v1::Job& view, absl::Time now);

}  // namespace mega::core
