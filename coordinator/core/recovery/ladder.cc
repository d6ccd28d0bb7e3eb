#include "coordinator/core/recovery/ladder.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "coordinator/core/recovery/records.h"
#include "coordinator/core/recovery/resize.h"
#include "coordinator/planner/spec/failure_rule.h"
#include "fmt/core.h"

namespace mega::core {
namespace {

constexpr int64_t kNodeFailures = 2;

class Chooser {
 public:
  Chooser(const Draft& draft, const v1::Job& job)
      : draft_(draft),
        job_(job),
        attempt_(NewestAttempt(job)),
        now_(FromProto(draft.wall())),
        node_(attempt_.failed_node()) {}

  Rung Choose() const {
    if (std::optional<Rung> rung = ByRule()) return *rung;
    return ByLadder();
  }

 private:
  std::optional<Rung> ByRule() const {
    if (!attempt_.has_failed_rank()) return std::nullopt;
    const v1::ExitStatus& exit = attempt_.ranks(static_cast<int>(attempt_.failed_rank())).exit();
    const auto& rules = job_.resolved_spec().recovery().rules();
    for (int i = 0; i < rules.size(); ++i) {
      const absl::StatusOr<spec::FailureRule> rule = spec::ParseFailureRule(rules[i]);
      if (!rule.ok() || !spec::IsAbout(*rule, exit)) continue;
      const std::string which = fmt::format("recovery.rules[{}] '{}'", i, rules[i]);
      if (rule->rung == kStop) return Rung{kStop, which, true};
      const std::string_view name = rule->rung == kSpare    ? kSpare
                                    : rule->rung == kShrink ? kShrink
                                                            : kRetry;
      if (const std::string obstacle = name == kShrink ? AgainstShrink() : ""; !obstacle.empty()) {
        return Rung{kStop, fmt::format("{}, but {}", which, obstacle), true};
      }
      if (const Budget budget = RungBudget(job_, name, now_); budget.is_used_up()) {
        return Rung{kStop, fmt::format("{}, but {}", which, UsedUp(name, budget)), true};
      }
      if (name == kRetry) return Rung{kRetry, which, true};
      return Rung{name, which, true, true};
    }
    return std::nullopt;
  }

  Rung ByLadder() const {
    const auto& said = job_.resolved_spec().recovery().ladder();
    std::vector<std::string> ladder(said.begin(), said.end());
    if (ladder.empty()) ladder = {std::string(kRetry), std::string(kSpare)};
    std::vector<std::string> obstacles;
    for (const std::string& name : ladder) {
      if (name == kStop) return Stop(obstacles);
      const std::string_view rung = name == kSpare ? kSpare : name == kShrink ? kShrink : kRetry;
      const std::string obstacle = rung == kSpare    ? AgainstSpare()
                                   : rung == kShrink ? AgainstShrink()
                                                     : AgainstRetry(ladder);
      if (!obstacle.empty()) {
        obstacles.push_back(fmt::format("{}: {}", rung, obstacle));
      } else if (rung == kRetry) {
        return {kRetry, "recovery.ladder", false};
      } else {
        const std::string why =
            fmt::format("recovery.ladder: {} of its failures within {} are blamed on node '{}'",
                        Failures(), absl::FormatDuration(RecoveryWindow(job_)), node_);
        return {rung, why, false, true};
      }
    }
    return Stop(obstacles);
  }

  static Rung Stop(const std::vector<std::string>& obstacles) {
    return {kStop,
            obstacles.empty() ? "recovery.ladder"
                              : fmt::format("recovery.ladder has no rung left ({})",
                                            absl::StrJoin(obstacles, "; ")),
            false};
  }

  // Why the rung cannot be taken now; empty if it can.
  std::string AgainstRetry(const std::vector<std::string>& ladder) const {
    if (const Budget budget = RungBudget(job_, kRetry, now_); budget.is_used_up()) {
      return UsedUp(kRetry, budget);
    }
    // A node that fails again and again is left out, as soon as others can take its ranks.
    const auto leads_to = [&](std::string_view rung, const std::string& obstacle) {
      return obstacle.empty() && std::ranges::count(ladder, rung) > 0;
    };
    if (Failures() >= MostFailures() &&
        (leads_to(kSpare, AgainstSpare()) || leads_to(kShrink, AgainstShrink()))) {
      return fmt::format("node '{}' failed {} times", node_, Failures());
    }
    return "";
  }

  std::string AgainstSpare() const {
    if (const Budget budget = RungBudget(job_, kSpare, now_); budget.is_used_up()) {
      return UsedUp(kSpare, budget);
    }
    if (node_.empty()) return "no node is to blame";
    std::set<NodeId> without = LeftOut(job_, now_);
    without.insert(node_);
    if (!HasRoomWithout(without)) {
      return fmt::format("no other nodes can take what ran on '{}'", node_);
    }
    return "";
  }

  std::string AgainstShrink() const {
    if (const Budget budget = RungBudget(job_, kShrink, now_); budget.is_used_up()) {
      return UsedUp(kShrink, budget);
    }
    if (node_.empty()) return "no node is to blame";
    if (!MayShrink(job_, now_)) return "resources.nodes.min leaves no node to do without";
    const int64_t nodes = NodesAfterLoss(draft_, job_, node_);
    if (nodes == 0) return fmt::format("without '{}' there are too few nodes", node_);
    return "";
  }

  std::string UsedUp(std::string_view rung, const Budget& budget) const {
    return fmt::format("recovery.budgets.{} is {} within {}, and it was taken {} times", rung,
                       budget.limit, absl::FormatDuration(RecoveryWindow(job_)), budget.used);
  }

  int64_t MostFailures() const {
    const v1::Recovery& recovery = job_.resolved_spec().recovery();
    return recovery.has_node_failures() ? recovery.node_failures() : kNodeFailures;
  }
  // With this one, which no record holds yet.
  int64_t Failures() const { return node_.empty() ? 0 : CountFailures(job_, node_, now_) + 1; }

  // Roughly: the planner has the last word, and where it finds no room they are taken after all.
  bool HasRoomWithout(const std::set<NodeId>& without) const {
    const State& state = draft_.state();
    std::vector<int64_t> sizes;
    for (const auto& [id, node] : state.durable.nodes) {
      if (without.contains(id) || !IsSchedulable(state, id)) continue;
      sizes.push_back(DevicesFor(state, job_.uid(), node));  // its own are not given back yet
    }
    std::ranges::sort(sizes, std::greater<>());
    std::set<NodeId> used;
    for (const v1::RankState& rank : attempt_.ranks()) used.insert(rank.node());
    const int64_t most =
        std::max<int64_t>(std::ssize(used), job_.resolved_spec().resources().nodes().desired());
    int64_t room = 0;
    for (int64_t i = 0; i < std::min<int64_t>(most, std::ssize(sizes)); ++i) {
      room += sizes[static_cast<size_t>(i)];
    }
    return room >= attempt_.ranks_size();
  }

  const Draft& draft_;
  const v1::Job& job_;
  const v1::Attempt& attempt_;
  const absl::Time now_;
  const NodeId node_;
};

}  // namespace

Rung ChooseRung(const Draft& draft, const v1::Job& job) { return Chooser(draft, job).Choose(); }

}  // namespace mega::core
