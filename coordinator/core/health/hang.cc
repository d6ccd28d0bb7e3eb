// Collectives are entered by all ranks of a group in the same order, so the rank whose newest one
// is the lowest is the one that the others wait for. Reports are up to a heartbeat old, but what
// has stood still for the whole limit has been told.
#include "coordinator/core/health/hang.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "coordinator/core/jobs/attempt.h"
#include "fmt/core.h"

namespace mega::core {
namespace {

// Learned from the attempt's own steps: 5 times its slow ones, and never less than half a minute (a
// garbage collection of a file system is no hang).
constexpr double kSlowSteps = 5;
constexpr absl::Duration kStepFloor = absl::Seconds(30);
constexpr absl::Duration kStepCeiling = absl::Hours(24);
constexpr absl::Duration kFirstStep = absl::Minutes(30);
// Data sets are built before the first step, in silence.
constexpr absl::Duration kData = absl::Hours(6);
// A last save may take ten minutes, and the others wait for it.
constexpr absl::Duration kCheckpoint = absl::Minutes(15);
constexpr size_t kMostNamed = 8;

bool HasTold(const v1::RankWatch& rank) { return !rank.progress().phase().empty(); }

bool IsInGroup(const v1::RankWatch& rank) { return !rank.progress().group().empty(); }

bool IsAnyIn(const v1::JobWatch& watch, std::string_view phase) {
  return std::ranges::any_of(
      watch.ranks(), [&](const v1::RankWatch& rank) { return rank.progress().phase() == phase; });
}

HangLimit StepLimit(const v1::HangRule& rule, const v1::JobWatch& watch) {
  if (rule.has_step_timeout()) return {FromProto(rule.step_timeout()), "health.hang.step_timeout"};
  const absl::Duration learned =
      std::clamp(absl::Seconds(kSlowSteps * watch.slow_step_seconds()), kStepFloor, kStepCeiling);
  return {learned, "learned from its steps; health.hang.step_timeout sets it"};
}

std::string Place(const v1::RankProgress& progress) {
  const std::string in =
      progress.group().empty()
          ? ""
          : fmt::format(", collective {} of group {}", progress.collective_seq(), progress.group());
  return fmt::format("phase {}, step {}{}", progress.phase(), progress.step(), in);
}

class Search {
 public:
  Search(const v1::Attempt& attempt, const v1::JobWatch& watch) : attempt_(attempt) {
    for (const v1::RankState& rank : attempt.ranks()) {
      if (MayRun(rank) && rank.rank() < watch.ranks_size()) {
        ranks_.emplace_back(&rank, &watch.ranks(static_cast<int>(rank.rank())));
      }
    }
  }

  Laggard Find() const {
    if (ranks_.empty()) return {};
    if (attempt_.state() == v1::ATTEMPT_STATE_STARTING) {
      if (const auto behind = Behind([](const Entry& e) { return e.first->ready(); })) {
        return Name(*behind, "is not ready while the others are");
      }
    }
    if (const auto behind = Behind([](const Entry& e) { return HasTold(*e.second); })) {
      return Name(*behind, "has told nothing of itself while others have");
    }
    if (const auto behind = Behind([](const Entry& e) { return IsInGroup(*e.second); })) {
      return Name(*behind, "has entered no collective while others have");
    }
    if (const auto laggard = ByCollective()) return *laggard;
    if (const auto behind = BehindInStep()) {
      return Name(*behind, "is at an earlier step than the others");
    }
    if (const auto behind = InAnotherPhase()) {
      return Name(*behind, "is still in another phase than the others");
    }
    return Together();
  }

 private:
  using Entry = std::pair<const v1::RankState*, const v1::RankWatch*>;
  using Entries = std::vector<Entry>;

  // Those for which it is not so; nothing if that is all or none.
  template <typename Is>
  std::optional<Entries> Behind(const Is& is) const {
    Entries behind;
    std::ranges::copy_if(ranks_, std::back_inserter(behind),
                         [&](const Entry& e) { return !is(e); });
    if (behind.empty() || behind.size() == ranks_.size()) return std::nullopt;
    return behind;
  }

  std::optional<Laggard> ByCollective() const {
    std::map<std::string, int64_t> newest;  // of each group
    for (const auto& [state, watch] : ranks_) {
      const v1::RankProgress& progress = watch->progress();
      if (progress.group().empty()) continue;
      int64_t& seq = newest[progress.group()];
      seq = std::max(seq, progress.collective_seq());
    }
    Entries behind;
    std::ranges::copy_if(ranks_, std::back_inserter(behind), [&](const Entry& e) {
      const auto group = newest.find(e.second->progress().group());
      return group != newest.end() && e.second->progress().collective_seq() < group->second;
    });
    if (behind.empty()) return std::nullopt;
    const auto lowest = std::ranges::min_element(
        behind, {}, [](const Entry& e) { return e.second->progress().collective_seq(); });
    std::rotate(behind.begin(), lowest, lowest + 1);  // that one first
    const v1::RankProgress& progress = behind.front().second->progress();
    return Name(behind, fmt::format("never joined collective {} of group {}",
                                    newest.at(progress.group()), progress.group()));
  }

  std::optional<Entries> BehindInStep() const {
    int64_t newest = 0;
    for (const auto& [state, watch] : ranks_) newest = std::max(newest, watch->progress().step());
    return Behind([&](const Entry& e) { return e.second->progress().step() == newest; });
  }

  std::optional<Entries> InAnotherPhase() const {
    std::map<std::string, size_t> phases;
    for (const auto& [state, watch] : ranks_) ++phases[watch->progress().phase()];
    const auto most =
        std::ranges::max_element(phases, {}, [](const auto& entry) { return entry.second; });
    if (2 * most->second <= ranks_.size()) return std::nullopt;
    return Behind([&](const Entry& e) { return e.second->progress().phase() == most->first; });
  }

  Laggard Name(const Entries& behind, const std::string& what) const {
    const auto& [state, watch] = behind.front();
    Laggard laggard{.rank = state->rank(), .node = state->node()};
    laggard.what =
        fmt::format("rank {} on node '{}' {} (it is at {})", state->rank(), state->node(), what,
                    HasTold(*watch) ? Place(watch->progress()) : "a place it never told");
    if (behind.size() == 1) return laggard;
    std::vector<std::string> others;
    for (size_t i = 1; i < std::min(behind.size(), kMostNamed); ++i) {
      others.push_back(std::to_string(behind[i].first->rank()));
    }
    laggard.what +=
        fmt::format(", and so rank{} {}{}", others.size() == 1 ? "" : "s",
                    absl::StrJoin(others, ", "), behind.size() > kMostNamed ? " and more" : "");
    return laggard;
  }

  // All stand at the same place.
  Laggard Together() const {
    std::set<NodeId> nodes;
    for (const auto& [state, watch] : ranks_) nodes.insert(state->node());
    const v1::RankWatch& any = *ranks_.front().second;
    const std::string place = HasTold(any) ? Place(any.progress()) : "a place they never told";
    Laggard laggard{.what = fmt::format("no rank is behind the others, all {} are at {}",
                                        ranks_.size(), place)};
    if (nodes.size() == 1) {
      laggard.node = *nodes.begin();
      laggard.what += fmt::format(" on node '{}'", laggard.node);
    }
    return laggard;
  }

  const v1::Attempt& attempt_;
  Entries ranks_;
};

}  // namespace

HangLimit LimitOf(const v1::Job& job, const v1::JobWatch& watch) {
  const v1::HangRule& rule = job.resolved_spec().health().hang();
  const v1::Attempt& attempt = NewestAttempt(job);
  if (attempt.state() == v1::ATTEMPT_STATE_STARTING) {
    if (rule.has_first_step_timeout()) {
      return {FromProto(rule.first_step_timeout()), "health.hang.first_step_timeout"};
    }
    return {IsAnyIn(watch, "data") ? kData : kFirstStep,
            "before the first step; health.hang.first_step_timeout sets it"};
  }
  if (attempt.state() != v1::ATTEMPT_STATE_RUNNING) return {};
  // Workers of release 0.1 tell nothing, and then nothing can be said.
  if (std::ranges::none_of(watch.ranks(), HasTold)) return {};
  if (IsAnyIn(watch, "saving")) {
    if (rule.has_checkpoint_timeout()) {
      return {FromProto(rule.checkpoint_timeout()), "health.hang.checkpoint_timeout"};
    }
    return {kCheckpoint, "while saving; health.hang.checkpoint_timeout sets it"};
  }
  HangLimit limit = StepLimit(rule, watch);
  if (IsAnyIn(watch, "evaluating")) {
    // At most a step's work each: a forward pass of the global batch.
    const int64_t steps = std::max<int64_t>(1, job.resolved_spec().training().eval_steps());
    limit.limit = std::min(limit.limit * static_cast<double>(steps), kStepCeiling);
    limit.rule += fmt::format(", times training.eval_steps {}", steps);
  }
  return limit;
}

Laggard FindLaggard(const v1::Attempt& attempt, const v1::JobWatch& watch) {
  return Search(attempt, watch).Find();
}

}  // namespace mega::core
