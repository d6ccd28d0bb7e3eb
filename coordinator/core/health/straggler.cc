// A round is one step of which every rank has reported, at most one a second. A rank whose compute
// time is `threshold` times the median in `rounds` rounds in a row is a straggler: this is said
// once an attempt, held against its node, and, where the job says so, the node is replaced: saved
// first, and only if another node can take the ranks.
#include "coordinator/core/health/straggler.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/clock.h"
#include "coordinator/core/health/findings.h"
#include "coordinator/core/jobs/yield.h"
#include "coordinator/core/recovery/records.h"
#include "fmt/core.h"

namespace mega::core {
namespace {

constexpr double kThreshold = 1.5;
constexpr int64_t kRounds = 10;
constexpr absl::Duration kRoundEvery = absl::Seconds(1);
// A difference that a scheduler makes.
constexpr double kNoiseSeconds = 0.01;
constexpr double kLongestStep = 1e7;  // seconds; what is longer is no measurement

double ComputeSeconds(const v1::StepReport& report) {
  const v1::PhaseSeconds& seconds = report.seconds();
  const double sum = seconds.forward() + seconds.backward() + seconds.optimizer();
  return IsDuration(sum) ? sum : 0;
}

// Data parallel only: all ranks have the same work. With pipeline stages each stage is a group.
double Median(const v1::JobWatch& watch) {
  std::vector<double> seconds;
  for (const v1::RankWatch& rank : watch.ranks()) seconds.push_back(rank.round_seconds());
  // The lower one of two: of a pair, the slow one is compared with the fast one.
  const auto middle = seconds.begin() + (std::ssize(seconds) - 1) / 2;
  std::ranges::nth_element(seconds, middle);
  return *middle;
}

// A node that the job does not use, with room for what runs of it on `slow`.
bool HasReplacement(const Draft& draft, const v1::Job& job, const NodeId& slow) {
  const v1::Attempt& attempt = NewestAttempt(job);
  const auto is_on = [](const NodeId& node) {
    return [&node](const v1::RankState& rank) { return rank.node() == node; };
  };
  const int64_t wanted = std::ranges::count_if(attempt.ranks(), is_on(slow));
  for (const auto& [id, node] : draft.state().durable.nodes) {
    if (!IsSchedulable(draft.state(), id) || std::ranges::any_of(attempt.ranks(), is_on(id))) {
      continue;
    }
    if (DevicesFor(draft.state(), job.uid(), node) >= wanted) return true;
  }
  return false;
}

void Replace(Draft& draft, const JobUid& uid, const NodeId& node, const std::string& what) {
  v1::Job& job = draft.EditJob(uid);
  const v1::Attempt& attempt = NewestAttempt(job);
  v1::RecoveryRecord record;
  *record.mutable_time() = draft.wall();
  record.set_rung(std::string(kSpare));
  record.set_cause(what);
  record.set_attempt(attempt.number());
  record.set_from_step(attempt.last_step());
  record.set_node(node);
  record.set_decided_by("health.straggler.action");
  record.set_leaves_out(true);
  record.add_nodes_out(node);
  AddRecord(job, std::move(record), FromProto(draft.wall()));
  YieldAttempt(draft, job, what, YieldGrace(job));
}

void Report(Draft& draft, const v1::Job& job, v1::RankWatch& rank, const v1::RankState& state,
            double median, int64_t rounds) {
  rank.set_is_straggler(true);
  const double ratio = rank.round_seconds() / median;
  std::string what = fmt::format(
      "rank {} on node '{}' is a straggler: it computes {:.3f} s a step, {:.2f} times the median "
      "of its group ({:.3f} s), in {} rounds in a row",
      state.rank(), state.node(), rank.round_seconds(), ratio, median, rounds);
  const v1::StragglerRule& rule = job.resolved_spec().health().straggler();
  bool is_replaced = rule.action() == "replace";
  if (is_replaced) {
    const Budget budget = RungBudget(job, kSpare, FromProto(draft.wall()));
    const bool has_room = HasReplacement(draft, job, state.node());
    is_replaced = has_room && !budget.is_used_up();
    what += is_replaced ? "; the node is replaced"
            : has_room  ? "; it stays, for recovery.budgets.spare is used up"
                        : "; it stays, for no other node has room";
  }
  draft.AddEvent(job.uid(), v1::SEVERITY_WARNING, "STRAGGLER", what,
                 {{"rank", std::to_string(state.rank())},
                  {"node", state.node()},
                  {"ratio", fmt::format("{:.2f}", ratio)},
                  {"seconds", fmt::format("{:.3f}", rank.round_seconds())},
                  {"median_seconds", fmt::format("{:.3f}", median)}});
  AddOwnFinding(draft, state.node(), "straggler", v1::SEVERITY_WARNING,
                fmt::format("job {}: {}", job.metadata().name(), what));
  if (is_replaced) Replace(draft, job.uid(), state.node(), what);
}

// Of the slow ones the slowest is judged first; replacing its node ends the attempt.
void JudgeRound(Draft& draft, const v1::Job& job, v1::JobWatch& watch) {
  const v1::StragglerRule& rule = job.resolved_spec().health().straggler();
  const double threshold = rule.has_threshold() ? rule.threshold() : kThreshold;
  const int64_t rounds = rule.has_rounds() ? rule.rounds() : kRounds;
  const double median = Median(watch);
  const v1::Attempt& attempt = NewestAttempt(job);
  v1::RankWatch* slowest = nullptr;
  int64_t number = 0;
  for (int i = 0; i < watch.ranks_size(); ++i) {
    v1::RankWatch& rank = *watch.mutable_ranks(i);
    const bool is_slow = rank.round_seconds() >= threshold * median &&
                         rank.round_seconds() >= median + kNoiseSeconds;
    rank.set_slow_rounds(is_slow ? rank.slow_rounds() + 1 : 0);
    if (rank.slow_rounds() < rounds || rank.is_straggler()) continue;
    if (slowest != nullptr && slowest->round_seconds() >= rank.round_seconds()) continue;
    slowest = &rank;
    number = i;
  }
  if (slowest == nullptr || median <= 0) return;
  const v1::RankState state = attempt.ranks(static_cast<int>(number));
  Report(draft, job, *slowest, state, median, rounds);
}

}  // namespace

bool IsDuration(double seconds) {
  return std::isfinite(seconds) && seconds >= 0 && seconds <= kLongestStep;
}

void NoteCompute(Draft& draft, const v1::Job& job, v1::JobWatch& watch,
                 const v1::StepReport& report) {
  if (job.resolved_spec().health().straggler().action() == "none") return;
  const v1::Attempt& attempt = NewestAttempt(job);
  if (attempt.state() != v1::ATTEMPT_STATE_RUNNING || IsSaving(attempt)) return;
  if (report.rank() < 0 || report.rank() >= watch.ranks_size() || watch.ranks_size() < 2) return;
  const int64_t now = absl::ToInt64Nanoseconds(draft.clock());
  const absl::Duration age = absl::Nanoseconds(now - watch.round_ns());
  if (report.step() > watch.round_step() && (watch.round_step() == 0 || age >= kRoundEvery)) {
    watch.set_round_step(report.step());
    watch.set_round_ns(now);
    watch.set_round_reports(0);
  }
  v1::RankWatch& rank = *watch.mutable_ranks(static_cast<int>(report.rank()));
  if (report.step() != watch.round_step() || rank.round_step() == report.step()) return;
  rank.set_round_step(report.step());
  rank.set_round_seconds(ComputeSeconds(report));
  watch.set_round_reports(watch.round_reports() + 1);
  if (watch.round_reports() == watch.ranks_size()) JudgeRound(draft, job, watch);
}

}  // namespace mega::core
