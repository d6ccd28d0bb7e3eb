#include "coordinator/core/health/watch.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/utf8.h"
#include "coordinator/core/health/hang.h"
#include "coordinator/core/health/straggler.h"
#include "coordinator/core/jobs/attempt.h"
#include "coordinator/core/jobs/yield.h"
#include "fmt/core.h"

namespace mega::core {
namespace {

constexpr size_t kWordBytes = 64;                       // of a phase or a group
constexpr absl::Duration kShortest = absl::Seconds(1);  // that a limit may be
constexpr double kForgetsEachStep = 0.99;  // of the envelope of its steps, so about a p99

v1::JobWatch* FindWatch(Draft& draft, const JobUid& uid, int64_t epoch) {
  const auto watch = draft.live().watches.find(uid);
  return watch != draft.live().watches.end() && watch->second.epoch() == epoch ? &watch->second
                                                                               : nullptr;
}

void CountAfresh(const Draft& draft, v1::JobWatch& watch) {
  watch.set_moved_ns(absl::ToInt64Nanoseconds(draft.clock()));
}

void Moved(const Draft& draft, v1::JobWatch& watch) {
  CountAfresh(draft, watch);
  watch.set_progressed_ns(watch.moved_ns());
}

// A worker that is silent cannot tell how its ranks get on.
bool CanSpeak(const Draft& draft, const NodeId& id) {
  const auto& nodes = draft.state().live.nodes;
  const auto node = nodes.find(id);
  return node != nodes.end() && node->second.session() != 0 && !node->second.suspect();
}

bool CanAllSpeak(const Draft& draft, const v1::Attempt& attempt) {
  if (draft.options().mutants.silence_is_hang) return true;
  return std::ranges::all_of(NodesOf(attempt),
                             [&](const NodeId& node) { return CanSpeak(draft, node); });
}

void EndHanging(Draft& draft, const JobUid& uid, const v1::JobWatch& watch, const HangLimit& limit,
                absl::Duration still) {
  v1::Job& job = draft.EditJob(uid);
  v1::Attempt& attempt = NewestAttempt(job);
  Laggard laggard = FindLaggard(attempt, watch);
  if (draft.options().mutants.blames_another && laggard.rank >= 0) {
    laggard.rank = (laggard.rank + 1) % attempt.ranks_size();
  }
  const std::string cause =
      fmt::format("hangs: nothing has moved for {} (the limit is {}: {}); {}",
                  absl::FormatDuration(absl::Trunc(still, absl::Milliseconds(100))),
                  absl::FormatDuration(limit.limit), limit.rule, laggard.what);
  attempt.set_failed_node(laggard.node);
  v1::RankProgress progress;
  if (laggard.rank >= 0) progress = watch.ranks(static_cast<int>(laggard.rank)).progress();
  draft.AddEvent(uid, v1::SEVERITY_ERROR, "HANG",
                 fmt::format("attempt {} {}", attempt.number(), cause),
                 {{"rank", laggard.rank < 0 ? "" : std::to_string(laggard.rank)},
                  {"node", laggard.node},
                  {"phase", progress.phase()},
                  {"step", std::to_string(progress.step())},
                  {"group", progress.group()},
                  {"collective_seq", std::to_string(progress.collective_seq())},
                  {"still_seconds", fmt::format("{:.1f}", absl::ToDoubleSeconds(still))}});
  // SIGKILL: a process that is stopped, or waits in the kernel, heeds nothing else.
  StopAttempt(draft, job, absl::ZeroDuration(), cause);
}

}  // namespace

void WatchAttempt(Draft& draft, const v1::Job& job) {
  const v1::Attempt& attempt = NewestAttempt(job);
  v1::JobWatch& watch = draft.live().watches[job.uid()];
  watch.Clear();
  watch.set_job_uid(job.uid());
  watch.set_epoch(attempt.epoch());
  Moved(draft, watch);
  for (int i = 0; i < attempt.ranks_size(); ++i) watch.add_ranks();
}

void CountWatchesAfresh(Draft& draft) {
  if (draft.options().mutants.pause_is_hang) return;
  for (auto& [uid, watch] : draft.live().watches) CountAfresh(draft, watch);
}

void CountWatchesAfresh(Draft& draft, const NodeId& node) {
  if (draft.options().mutants.silence_is_hang) return;
  for (const JobUid& uid : JobsOn(draft.state(), node)) {
    const auto watch = draft.live().watches.find(uid);
    if (watch != draft.live().watches.end()) CountAfresh(draft, watch->second);
  }
}

void OnRankProgress(Draft& draft, const NodeId& node, const v1::RankProgress& progress) {
  const v1::RankRef& ref = progress.rank();
  if (FindRankJob(draft, node, ref) == nullptr) return;
  v1::JobWatch* watch = FindWatch(draft, ref.job_uid(), ref.epoch());
  if (watch == nullptr || ref.rank() >= watch->ranks_size()) return;
  v1::RankProgress& known = *watch->mutable_ranks(static_cast<int>(ref.rank()))->mutable_progress();
  // Both only rise within an attempt: this is a late copy, and where the rank was names nobody.
  if (progress.step() < known.step() || progress.collective_seq() < known.collective_seq()) return;
  const std::string phase = CutUtf8(progress.phase(), kWordBytes);
  const std::string group = CutUtf8(progress.group(), kWordBytes);
  if (known.phase() == phase && known.group() == group && known.step() == progress.step() &&
      known.collective_seq() == progress.collective_seq()) {
    return;
  }
  known.set_phase(phase);
  known.set_group(group);
  known.set_step(progress.step());
  known.set_collective_seq(progress.collective_seq());
  Moved(draft, *watch);
}

void NoteStep(Draft& draft, const v1::StepReport& report) {
  v1::JobWatch* watch = FindWatch(draft, report.job_uid(), report.epoch());
  if (watch == nullptr) return;
  NoteCompute(draft, *draft.FindJob(report.job_uid()), *watch, report);
  if (report.rank() != 0) return;
  Moved(draft, *watch);
  const double seconds = report.step_seconds();
  if (!IsDuration(seconds)) return;
  watch->set_slow_step_seconds(std::max(seconds, watch->slow_step_seconds() * kForgetsEachStep));
}

absl::Duration StandstillOf(const Draft& draft, const v1::Job& job) {
  const auto& watches = draft.state().live.watches;
  const auto watch = watches.find(job.uid());
  if (watch == watches.end() || watch->second.epoch() != NewestAttempt(job).epoch()) {
    return absl::ZeroDuration();
  }
  return draft.clock() - absl::Nanoseconds(watch->second.progressed_ns());
}

void CheckWatches(Draft& draft) {
  std::vector<JobUid> over;
  for (auto& [uid, watch] : draft.live().watches) {
    const v1::Job* job = draft.FindJob(uid);
    const v1::Attempt* attempt = job == nullptr ? nullptr : LiveAttempt(*job);
    if (attempt == nullptr || attempt->epoch() != watch.epoch()) {
      over.push_back(uid);
      continue;
    }
    if (IsSaving(*attempt) || draft.options().mutants.no_hang_verdict) continue;
    const absl::Duration still = draft.clock() - absl::Nanoseconds(watch.moved_ns());
    if (still < kShortest) continue;  // most are here
    const HangLimit limit = LimitOf(*job, watch);
    if (still < limit.limit) continue;
    if (CanAllSpeak(draft, *attempt)) {
      EndHanging(draft, uid, watch, limit, still);
    } else {
      CountAfresh(draft, watch);
    }
  }
  for (const JobUid& uid : over) draft.live().watches.erase(uid);
}

}  // namespace mega::core
