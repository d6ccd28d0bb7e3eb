#include "coordinator/core/recovery/records.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/utf8.h"
#include "fmt/core.h"

namespace mega::core {
namespace {

// Records of the window are all counted, as many as the largest budget (job.proto); older ones are
// for people, and only these have words.
constexpr int kMostRecords = 1000;
constexpr int kShownRecords = 20;
constexpr size_t kTextBytes = 512;
constexpr size_t kNamedNodes = 3;  // in a reason

constexpr absl::Duration kWindow = absl::Hours(24);
constexpr int64_t kMaxRestarts = 100;
constexpr int64_t kMaxCycles = 3;

bool IsWithin(const v1::Job& job, const v1::RecoveryRecord& record, absl::Time now) {
  return now - FromProto(record.time()) < RecoveryWindow(job);
}

bool IsRestart(const v1::RecoveryRecord& record) {
  return record.rung() != kStop && record.rung() != kGrow && record.rung() != kScale &&
         record.rung() != kRollBack;
}

template <typename Claim>
int64_t CountWithin(const v1::Job& job, absl::Time now, const Claim& claim) {
  return std::ranges::count_if(job.recoveries(), [&](const v1::RecoveryRecord& record) {
    return IsWithin(job, record, now) && claim(record);
  });
}

// Attempts are found by number: old ones are forgotten.
std::set<NodeId> NodesOfAttempt(const v1::Job& job, int64_t number) {
  std::set<NodeId> nodes;
  for (const v1::Attempt& attempt : job.attempts()) {
    if (attempt.number() != number) continue;
    for (const v1::RankState& rank : attempt.ranks()) nodes.insert(rank.node());
  }
  return nodes;
}

void ShowBudget(v1::Job& view, std::string key, const Budget& budget, absl::Duration window) {
  if (budget.limit < 0) return;
  v1::RecoveryBudgetUse& use = *view.add_recovery_budgets();
  use.set_key(std::move(key));
  use.set_used(budget.used);
  use.set_limit(budget.limit);
  if (window > absl::ZeroDuration()) *use.mutable_window() = ToProto(window);
}

}  // namespace

absl::Duration RecoveryWindow(const v1::Job& job) {
  const v1::RecoveryBudgets& budgets = job.resolved_spec().recovery().budgets();
  return budgets.has_window() ? FromProto(budgets.window()) : kWindow;
}

Budget RestartBudget(const v1::Job& job, absl::Time now) {
  const v1::Recovery& recovery = job.resolved_spec().recovery();
  return {.used = CountWithin(job, now, IsRestart),
          .limit = recovery.has_max_restarts() ? recovery.max_restarts() : kMaxRestarts};
}

Budget CycleBudget(const v1::Job& job) {
  const v1::Recovery& recovery = job.resolved_spec().recovery();
  return {.used = job.cycles_without_progress(),
          .limit = recovery.has_no_progress_cycles() ? recovery.no_progress_cycles() : kMaxCycles};
}

Budget RungBudget(const v1::Job& job, std::string_view rung, absl::Time now) {
  const v1::RecoveryBudgets& budgets = job.resolved_spec().recovery().budgets();
  Budget budget{
      .used = CountWithin(job, now, [&](const v1::RecoveryRecord& r) { return r.rung() == rung; })};
  if (rung == kRetry && budgets.has_retry()) budget.limit = budgets.retry();
  if (rung == kSpare && budgets.has_spare()) budget.limit = budgets.spare();
  if (rung == kShrink && budgets.has_shrink()) budget.limit = budgets.shrink();
  return budget;
}

int64_t CountFailures(const v1::Job& job, const NodeId& node, absl::Time now) {
  return CountWithin(job, now, [&](const v1::RecoveryRecord& r) { return r.node() == node; });
}

std::set<NodeId> LeftOut(const v1::Job& job, absl::Time now, bool by_rule) {
  std::set<NodeId> nodes;
  for (const v1::RecoveryRecord& record : job.recoveries()) {
    if (!record.leaves_out() || (by_rule && !record.by_rule())) continue;
    if (!IsWithin(job, record, now)) continue;
    nodes.insert(record.node());
  }
  return nodes;
}

std::string LeftOutText(const v1::Job& job, absl::Time now) {
  const std::set<NodeId> nodes = LeftOut(job, now, /*by_rule=*/true);
  std::string text;
  size_t shown = 0;
  for (const NodeId& node : nodes) {
    if (shown++ == kNamedNodes) {
      return text + fmt::format("; so are {} others", nodes.size() - kNamedNodes);
    }
    const auto newest = std::find_if(
        job.recoveries().rbegin(), job.recoveries().rend(),
        [&](const auto& r) { return r.leaves_out() && r.by_rule() && r.node() == node; });
    text += fmt::format("; node '{}' is left out ({})", node, newest->decided_by());
  }
  return text;
}

absl::Time LeftOutUntil(const v1::Job& job, absl::Time now) {
  for (const v1::RecoveryRecord& record : job.recoveries()) {  // oldest first
    if (record.leaves_out() && IsWithin(job, record, now)) {
      return FromProto(record.time()) + RecoveryWindow(job);
    }
  }
  return absl::InfiniteFuture();
}

void AddRecord(v1::Job& job, v1::RecoveryRecord record, absl::Time now) {
  record.set_cause(CutUtf8(record.cause(), kTextBytes));
  record.set_decided_by(CutUtf8(record.decided_by(), kTextBytes));
  *job.add_recoveries() = std::move(record);
  auto& records = *job.mutable_recoveries();
  int forgotten = std::max(0, records.size() - kMostRecords);
  while (records.size() - forgotten > kShownRecords && !IsWithin(job, records[forgotten], now)) {
    ++forgotten;
  }
  records.DeleteSubrange(0, forgotten);
  for (int i = records.size() - kShownRecords - 1; i >= 0 && !records[i].cause().empty(); --i) {
    records[i].clear_cause();
    records[i].clear_decided_by();
    records[i].clear_nodes_in();
    records[i].clear_nodes_out();
  }
}

const v1::RecoveryRecord* NewestDecision(const v1::Job& job) {
  const auto& records = job.recoveries();
  const auto newest = std::find_if(records.rbegin(), records.rend(),
                                   [](const auto& record) { return record.rung() != kRollBack; });
  return newest == records.rend() ? nullptr : &*newest;
}

v1::RecoveryRecord* FindRecord(v1::Job& job) {
  if (job.recoveries().empty() || job.attempts_size() < 2) return nullptr;
  v1::RecoveryRecord& record = *job.mutable_recoveries()->rbegin();
  return record.attempt() == job.attempts(job.attempts_size() - 2).number() ? &record : nullptr;
}

void NotePlacement(v1::Job& job) {
  v1::Attempt& attempt = NewestAttempt(job);
  v1::RecoveryRecord* record = FindRecord(job);
  attempt.set_rung(job.attempts_size() == 1 ? "first" : "resume");
  if (record == nullptr) return;
  attempt.set_rung(record->rung());
  const std::set<NodeId> before = NodesOfAttempt(job, record->attempt());
  const std::set<NodeId> after = NodesOfAttempt(job, attempt.number());
  for (const NodeId& node : after) {
    if (!before.contains(node)) record->add_nodes_in(node);
  }
  for (const NodeId& node : before) {
    const bool is_noted = std::ranges::count(record->nodes_out(), node) > 0;
    if (!after.contains(node) && !is_noted) record->add_nodes_out(node);
  }
}

void ShowBudgets(v1::Job& view, absl::Time now) {
  const absl::Duration window = RecoveryWindow(view);
  view.clear_recovery_budgets();
  ShowBudget(view, "recovery.no_progress_cycles", CycleBudget(view), absl::ZeroDuration());
  ShowBudget(view, "recovery.max_restarts", RestartBudget(view, now), window);
  ShowBudget(view, "recovery.budgets.retry", RungBudget(view, kRetry, now), window);
  ShowBudget(view, "recovery.budgets.spare", RungBudget(view, kSpare, now), window);
  ShowBudget(view, "recovery.budgets.shrink", RungBudget(view, kShrink, now), window);
  const std::set<NodeId> left_out = LeftOut(view, now);
  view.clear_excluded_nodes();
  for (const NodeId& node : left_out) view.add_excluded_nodes(node);
}

}  // namespace mega::core
