#include "coordinator/core/jobs/checkpoint.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/utf8.h"
#include "coordinator/core/jobs/attempt.h"
#include "coordinator/core/jobs/kept.h"
#include "coordinator/core/jobs/manifest.h"
#include "coordinator/core/jobs/yield.h"
#include "coordinator/core/recovery/resize.h"
#include "coordinator/core/recovery/roll_back.h"
#include "fmt/core.h"
#include "google/protobuf/util/json_util.h"
#include "manifest/kept.h"

namespace mega::core {
namespace {

// Checkpoints of one job that may be under way at a time, and failed ones that are remembered.
constexpr size_t kStepsUnderWay = 4;
constexpr size_t kMessageBytes = 4 << 10;
// Stands among the parts of a step for "a rank could not save its own".
constexpr int64_t kNobody = -1;

using Parts = std::map<PartKey, v1::CheckpointPart>;

void ForgetParts(Parts& parts, const JobUid& uid, int64_t up_to_step) {
  auto it = parts.lower_bound({uid, 0, 0});
  while (it != parts.end() && std::get<0>(it->first) == uid &&
         std::get<1>(it->first) <= up_to_step) {
    it = parts.erase(it);
  }
}

void ForgetStep(Parts& parts, const JobUid& uid, int64_t step) {
  parts.erase(parts.lower_bound({uid, step, kNobody}), parts.upper_bound({uid, step, INT64_MAX}));
}

// What a job has under way, lowest first: steps that can still become checkpoints, and those of
// which nothing is kept but that they cannot.
struct UnderWay {
  std::vector<int64_t> saved;
  std::vector<int64_t> failed;
};
UnderWay StepsUnderWay(const Parts& parts, const JobUid& uid) {
  UnderWay steps;
  for (auto it = parts.lower_bound({uid, 0, 0}); it != parts.end() && std::get<0>(it->first) == uid;
       it = parts.upper_bound({uid, std::get<1>(it->first), INT64_MAX})) {
    const auto& [job, step, rank] = it->first;
    (rank == kNobody ? steps.failed : steps.saved).push_back(step);
  }
  return steps;
}

// Those of the current attempt; an earlier attempt's would be of an earlier epoch.
std::vector<const v1::CheckpointPart*> PartsOf(const Parts& parts, const v1::CheckpointPart& like) {
  std::vector<const v1::CheckpointPart*> found;
  for (auto it = parts.lower_bound({like.job_uid(), like.step(), 0});
       it != parts.upper_bound({like.job_uid(), like.step(), INT64_MAX}); ++it) {
    if (it->second.epoch() == like.epoch()) found.push_back(&it->second);
  }
  return found;
}

// A node that was forgotten since the attempt ended needs no answer, and cannot be given one.
void Tell(Draft& draft, const std::set<NodeId>& nodes, const v1::Command& command) {
  for (const NodeId& node : nodes) {
    if (draft.FindNode(node) != nullptr) draft.AddCommand(node, command);
  }
}

// To the newest attempt, whichever attempt's the checkpoint is. Rank 0 writes the manifest beside
// the slices; the others hear which checkpoint it is. The whole is as large as half a message, and
// a fleet has thousands of nodes.
void SendCommitted(Draft& draft, const v1::Job& job, const v1::Manifest& manifest,
                   std::set<NodeId> nodes) {
  v1::Command command;
  v1::CheckpointCommitted& committed = *command.mutable_checkpoint_committed();
  committed.set_job_uid(job.uid());
  committed.set_attempt(NewestAttempt(job).number());
  committed.set_epoch(NewestAttempt(job).epoch());
  if (const NodeId& writer = NewestAttempt(job).ranks(0).node(); nodes.erase(writer) > 0) {
    *committed.mutable_manifest() = manifest;
    Tell(draft, {writer}, command);
    committed.clear_manifest();
  }
  v1::Manifest& which = *committed.mutable_manifest();
  which.set_job_uid(manifest.job_uid());
  which.set_attempt(manifest.attempt());
  which.set_epoch(manifest.epoch());
  which.set_step(manifest.step());
  Tell(draft, nodes, command);
}

// To the newest attempt: its ranks take back what they have written for the step.
void SendRejected(Draft& draft, const v1::Job& job, int64_t step, const std::string& reason) {
  const v1::Attempt& attempt = NewestAttempt(job);
  v1::Command command;
  v1::CheckpointRejected& rejected = *command.mutable_checkpoint_rejected();
  rejected.set_job_uid(job.uid());
  rejected.set_attempt(attempt.number());
  rejected.set_epoch(attempt.epoch());
  rejected.set_step(step);
  rejected.set_reason(CutUtf8(reason, kMessageBytes));
  Tell(draft, NodesOf(attempt), command);
}

bool HasFailed(const Parts& parts, const JobUid& uid, int64_t step, int64_t epoch) {
  const auto mark = parts.find({uid, step, kNobody});
  return mark != parts.end() && mark->second.epoch() == epoch;
}

// Nothing of the newest attempt's step is kept but that it will not be a checkpoint: the ranks hear
// of it, now and once.
void Reject(Draft& draft, const v1::Job& job, int64_t step, const std::string& why) {
  Parts& parts = draft.live().parts;
  ForgetStep(parts, job.uid(), step);
  const UnderWay known = StepsUnderWay(parts, job.uid());
  if (known.failed.size() >= kStepsUnderWay) ForgetStep(parts, job.uid(), known.failed.front());
  v1::CheckpointPart& mark = parts[{job.uid(), step, kNobody}];
  mark.set_job_uid(job.uid());
  mark.set_epoch(NewestAttempt(job).epoch());
  mark.set_step(step);
  mark.set_rank(kNobody);
  SendRejected(draft, job, step, why);
}

// Older ones will not be completed once later ones are.
void Abandon(Draft& draft, const v1::Job& job, int64_t step) {
  const std::string why = fmt::format(
      "its parts are not complete, and neither are those of {} later ones; only so many are kept",
      kStepsUnderWay);
  draft.AddEvent(job.uid(), v1::SEVERITY_WARNING, "CHECKPOINT_ABANDONED",
                 fmt::format("the checkpoint of step {} is given up: {}", step, why),
                 {{"step", std::to_string(step)}});
  Reject(draft, job, step, why);
}

// Room for the step among those that are saved, at the cost of the oldest. False: it is itself
// older than all of them, and is given up.
bool MakePlace(Draft& draft, const v1::Job& job, int64_t step) {
  const UnderWay known = StepsUnderWay(draft.live().parts, job.uid());
  if (std::ranges::count(known.saved, step) > 0 || known.saved.size() < kStepsUnderWay) return true;
  const int64_t oldest = std::min(step, known.saved.front());
  Abandon(draft, job, oldest);
  return oldest != step;
}

// A step that a rank of the attempt can have saved.
bool IsStepOf(const v1::Attempt& attempt, int64_t step) {
  return IsStep(step) && (attempt.plan().steps() <= 0 || step <= attempt.plan().steps());
}

std::string SpecJson(const v1::JobSpec& spec) {
  v1::JobSpec sections;
  *sections.mutable_model() = spec.model();
  *sections.mutable_data() = spec.data();
  *sections.mutable_training() = spec.training();
  *sections.mutable_optimizer() = spec.optimizer();
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string json;
  if (!google::protobuf::util::MessageToJsonString(sections, &json, options).ok()) return "{}";
  return json;
}

void Commit(Draft& draft, v1::Job& job, v1::Manifest manifest) {
  manifest.set_job_name(job.metadata().name());
  *manifest.mutable_create_time() = draft.wall();
  manifest.set_spec_json(SpecJson(job.resolved_spec()));
  *job.add_checkpoints() = manifest;
  job.set_last_step(std::max(job.last_step(), manifest.step()));
  // Its step report may still be on its way, and is lost if the rank ends now.
  v1::Attempt& attempt = NewestAttempt(job);
  attempt.set_last_step(std::max(attempt.last_step(), manifest.step()));
  attempt.set_committed_step(manifest.step());
  draft.AddEvent(job.uid(), v1::SEVERITY_INFO, "CHECKPOINT_COMMITTED",
                 fmt::format("the checkpoint of step {} is complete: {} tensors, {} bytes, in {}",
                             manifest.step(), manifest.tensors_size(), manifest.total_bytes(),
                             manifest.directory()),
                 {{"step", std::to_string(manifest.step())},
                  {"bytes", std::to_string(manifest.total_bytes())},
                  {"directory", manifest.directory()}});
  SendCommitted(draft, job, manifest, NodesOf(attempt));
  RemoveOld(draft, job);
  YieldIfSaved(draft, job, manifest.step());
  ResizeIfSaved(draft, job, manifest.step());
}

// A checkpoint, or overtaken by one: settled, also when the job has none of them any more, because
// a user went back behind it or deleted it. Its files are not the ranks' to take back.
bool IsSettled(const v1::Job& job, int64_t step) {
  return step <= std::max(NewestAttempt(job).committed_step(), NewestCheckpoint(job));
}

// The node has not acked yet that its rank is to take the part back. Which steps have failed is
// forgotten with the process; its orders are not.
bool IsTakenBack(const State& state, const NodeId& node, const v1::CheckpointPart& part) {
  return std::ranges::any_of(CommandsOf(state, node), [&](const auto& entry) {
    const v1::CheckpointRejected& rejected = entry.second.command().checkpoint_rejected();
    return rejected.job_uid() == part.job_uid() && rejected.epoch() == part.epoch() &&
           rejected.step() == part.step();
  });
}

// The parts of the other ranks will never be a checkpoint; kept, they would fill the disk that is
// full already. Said once a step, however many ranks fail.
void GiveUp(Draft& draft, const v1::Job& job, const v1::CheckpointFailed& failed,
            const std::string& why) {
  if (IsSettled(job, failed.step()) ||
      HasFailed(draft.live().parts, job.uid(), failed.step(), failed.rank().epoch())) {
    return;
  }
  Reject(draft, job, failed.step(), why);
}

}  // namespace

void OnCheckpointPart(Draft& draft, const NodeId& node, const v1::CheckpointPart& part) {
  const v1::Job* found = draft.FindJob(part.job_uid());
  if (found == nullptr) return;
  const v1::Attempt* attempt = CurrentAttempt(draft, *found, part.attempt(), part.epoch());
  if (attempt == nullptr || !IsStepOf(*attempt, part.step()) || part.rank() < 0 ||
      part.rank() >= attempt->ranks_size() || attempt->ranks(part.rank()).node() != node) {
    return;
  }
  // The last checkpoint's parts may come after the last exit, when a session broke in between.
  if (IsTerminal(found->phase()) && found->phase() != v1::JOB_PHASE_SUCCEEDED) return;
  if (!found->checkpoints().empty() && found->checkpoints().rbegin()->step() >= part.step()) {
    // Sent again because the answer was lost, or overtaken by a newer one; both are settled.
    const auto& known = found->checkpoints();
    const auto same = std::ranges::find(known, part.step(), &v1::Manifest::step);
    if (same != known.end() && same->epoch() == part.epoch()) {
      SendCommitted(draft, *found, *same, {node});
    }
    return;
  }
  const auto& mutants = draft.options().mutants;
  if (IsSettled(*found, part.step()) && !mutants.reject_settled) return;
  Parts& parts = draft.live().parts;
  if (HasFailed(parts, part.job_uid(), part.step(), part.epoch()) ||
      IsTakenBack(draft.state(), node, part)) {
    return;
  }
  if (IsRolledBack(*found, *attempt) && !mutants.save_after_roll_back) {
    return Reject(draft, *found, part.step(), "the job goes on from an older checkpoint");
  }
  if (!MakePlace(draft, *found, part.step())) return;
  v1::CheckpointPart& stored = parts[{part.job_uid(), part.step(), part.rank()}];
  if (stored.epoch() == part.epoch()) return;  // twice
  stored = part;
  const std::vector<const v1::CheckpointPart*> together = PartsOf(parts, part);
  if (std::ssize(together) < attempt->ranks_size()) return;

  absl::StatusOr<v1::Manifest> manifest = AssembleManifest(together);
  if (manifest.ok()) {
    Commit(draft, draft.EditJob(found->uid()), *std::move(manifest));
  } else {
    draft.AddEvent(found->uid(), v1::SEVERITY_WARNING, "CHECKPOINT_REJECTED",
                   fmt::format("the checkpoint of step {} is not usable: {}", part.step(),
                               std::string(manifest.status().message())),
                   {{"step", std::to_string(part.step())}});
    SendRejected(draft, *found, part.step(), std::string(manifest.status().message()));
  }
  ForgetParts(parts, found->uid(), part.step());
}

void OnCheckpointFailed(Draft& draft, const NodeId& node, const v1::CheckpointFailed& failed) {
  const v1::Job* found = FindRankJob(draft, node, failed.rank());
  if (found == nullptr) return;
  const std::string what =
      fmt::format("rank {} on node '{}' could not save step {}: {}", failed.rank().rank(), node,
                  failed.step(), CutUtf8(failed.message(), kMessageBytes));
  draft.AddEvent(
      found->uid(), v1::SEVERITY_WARNING, "CHECKPOINT_FAILED", what,
      {{"step", std::to_string(failed.step())}, {"rank", std::to_string(failed.rank().rank())}});
  if (IsStepOf(*LiveAttempt(*found), failed.step())) GiveUp(draft, *found, failed, what);
}

void TellKept(Draft& draft, const v1::Job& job) {
  const std::set<NodeId> nodes = NodesOf(NewestAttempt(job));
  const auto& known = job.checkpoints();
  const auto told = std::min<std::ptrdiff_t>(known.size(), manifest::kMostTold);
  for (auto it = known.end() - told; it != known.end(); ++it) SendCommitted(draft, job, *it, nodes);
}

}  // namespace mega::core
