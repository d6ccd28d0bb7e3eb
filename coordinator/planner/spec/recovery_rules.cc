#include "coordinator/planner/spec/recovery_rules.h"

#include <algorithm>
#include <set>
#include <string>

#include "base/utf8.h"
#include "coordinator/planner/spec/failure_rule.h"
#include "coordinator/planner/spec/keys.h"
#include "fmt/format.h"

namespace mega::spec {
namespace {

// Rungs whose feature exists, as recovery.ladder's own KeyRule has them.
std::vector<std::string> Rungs() {
  const v1::KeyRule rule = RuleOf(*v1::Recovery::descriptor()->FindFieldByName("ladder"));
  const std::vector<std::string> refused = Words(rule.unavailable_words());
  std::vector<std::string> rungs = Words(rule.one_of());
  std::erase_if(rungs, [&](const std::string& rung) {
    return std::find(refused.begin(), refused.end(), rung) != refused.end();
  });
  return rungs;
}

class Checker {
 public:
  Checker(const v1::JobSpec& spec, std::vector<Violation>& out)
      : spec_(spec), recovery_(spec.recovery()), out_(out) {}

  void Check() {
    CheckLadder();
    for (int i = 0; i < recovery_.rules_size(); ++i) CheckRule(i);
    CheckBudget("retry", recovery_.budgets().has_retry());
    CheckBudget("spare", recovery_.budgets().has_spare());
    if (spec_.elastic().on_loss() == "shrink") taken_.insert("shrink");
    CheckBudget("shrink", recovery_.budgets().has_shrink());
    CheckNodes();
  }

 private:
  template <typename... Args>
  void Add(const std::string& field, fmt::format_string<Args...> format, Args&&... args) {
    out_.push_back({field, field + " " + fmt::format(format, std::forward<Args>(args)...)});
  }

  void CheckLadder() {
    for (int i = 0; i < recovery_.ladder_size(); ++i) {
      const std::string& rung = recovery_.ladder(i);
      const std::string path = fmt::format("recovery.ladder[{}]", i);
      const auto first = std::find(recovery_.ladder().begin(), recovery_.ladder().end(), rung);
      if (first - recovery_.ladder().begin() < i)
        Add(path, "is {} for the second time; name each rung once", rung);
      if (i > 0 && recovery_.ladder(i - 1) == "stop")
        Add(path, "is {} after stop, and would never be taken; put stop last", rung);
      taken_.insert(rung);
    }
    if (recovery_.ladder().empty()) taken_ = {"retry", "spare"};
  }

  void CheckRule(int i) {
    const std::string path = fmt::format("recovery.rules[{}]", i);
    const absl::StatusOr<FailureRule> rule = ParseFailureRule(recovery_.rules(i));
    if (!rule.ok()) return Add(path, "{}", std::string(rule.status().message()));
    const std::vector<std::string> rungs = Rungs();
    if (std::find(rungs.begin(), rungs.end(), rule->rung) == rungs.end())
      return Add(path, "takes the rung '{}'; choose {}", CutUtf8(rule->rung, 64), Choices(rungs));
    const bool is_reserved = rule->sign == FailureRule::Sign::kExit &&
                             (rule->number == kExitBadInput || rule->number == kExitDoNotRequeue);
    if (is_reserved && rule->rung != "stop")
      Add(path, "takes {} after exit code {}, which always stops the job; leave the rule out",
          rule->rung, rule->number);
    taken_.insert(rule->rung);
  }

  void CheckBudget(const std::string& rung, bool is_set) {
    if (!is_set || taken_.contains(rung)) return;
    Add("recovery.budgets." + rung,
        "is set, but neither recovery.ladder nor recovery.rules take the rung {}; leave it out",
        rung);
  }

  void CheckNodes() {
    const v1::NodeRange& nodes = spec_.resources().nodes();
    if (nodes.has_min() && nodes.min() > nodes.desired())
      return Add("resources.nodes.min",
                 "is {} but resources.nodes.desired is {}; choose at most {}", nodes.min(),
                 nodes.desired(), nodes.desired());
    if (nodes.has_max() && nodes.max() < nodes.desired())
      return Add("resources.nodes.max",
                 "is {} but resources.nodes.desired is {}; choose at least {}", nodes.max(),
                 nodes.desired(), nodes.desired());
    const bool has_less = nodes.has_min() && nodes.min() < nodes.desired();
    if (taken_.contains("shrink") && !has_less)
      Add("resources.nodes.min",
          "must be less than resources.nodes.desired, which is {}, where elastic.on_loss, "
          "recovery.ladder or recovery.rules say shrink",
          nodes.desired());
    const bool may_be_small =
        taken_.contains("shrink") || (nodes.has_max() && nodes.max() > nodes.desired());
    if (spec_.elastic().on_gain() == "next_checkpoint" && !may_be_small)
      Add("elastic.on_gain",
          "is next_checkpoint, but the job never runs on fewer nodes than it wants; let it shrink "
          "(elastic.on_loss), or leave it out");
  }

  const v1::JobSpec& spec_;
  const v1::Recovery& recovery_;
  std::vector<Violation>& out_;
  std::set<std::string> taken_;
};

}  // namespace

void CheckRecovery(const v1::JobSpec& resolved, std::vector<Violation>& out) {
  Checker(resolved, out).Check();
}

}  // namespace mega::spec
