#include "coordinator/core/jobs/registry.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "coordinator/core/jobs/attempt.h"
#include "coordinator/core/jobs/kept.h"
#include "coordinator/core/jobs/manifest.h"
#include "coordinator/core/jobs/pause.h"
#include "coordinator/core/jobs/phase.h"
#include "coordinator/core/jobs/removal.h"
#include "coordinator/core/jobs/yield.h"
#include "fmt/core.h"

namespace mega::core {
namespace {

// "20, 30 and 40"; of very many the newest.
std::string StepsOf(const v1::Job& job) {
  constexpr int kNamed = 20;
  const int first = std::max(0, job.checkpoints_size() - kNamed);
  std::string text;
  for (int i = first; i < job.checkpoints_size(); ++i) {
    const bool is_last = i + 1 == job.checkpoints_size();
    absl::StrAppend(&text, i == first ? "" : is_last ? " and " : ", ", job.checkpoints(i).step());
  }
  return first == 0 ? text : absl::StrCat(text, " (and ", first, " older ones)");
}

// Ranks of the live attempt may not have read it to the end.
bool IsBeingLoaded(const v1::Job& job, const v1::Manifest& manifest) {
  const v1::Attempt* attempt = LiveAttempt(job);
  return attempt != nullptr && attempt->has_load() && !attempt->has_first_step_time() &&
         attempt->load().step() == manifest.step() && attempt->load().epoch() == manifest.epoch();
}

struct Obstacle {
  std::string_view reason;
  std::string message;
};

std::string WithoutNewest(const v1::Job& job) {
  if (IsTerminal(job.phase())) return "it is what is left of its training";
  if (job.checkpoints_size() == 1) return "without it a restart begins anew";
  return fmt::format("without it a restart goes on from step {}",
                     job.checkpoints(job.checkpoints_size() - 2).step());
}

std::optional<Obstacle> AgainstDeletion(const v1::Job& job, const v1::Manifest& manifest,
                                        bool force) {
  const std::string& name = job.metadata().name();
  if (IsBeingLoaded(job, manifest)) {
    return Obstacle{"CHECKPOINT_IN_USE",
                    fmt::format("attempt {} of job '{}' is starting from the checkpoint of step "
                                "{}; delete it once the attempt has made a step",
                                NewestAttempt(job).number(), name, manifest.step())};
  }
  if (force) return std::nullopt;
  if (manifest.pinned()) {
    return Obstacle{"CHECKPOINT_PINNED",
                    fmt::format("the checkpoint of step {} of job '{}' is pinned; unpin it, or "
                                "delete it with force",
                                manifest.step(), name)};
  }
  if (manifest.step() != NewestCheckpoint(job)) return std::nullopt;
  return Obstacle{"CHECKPOINT_NEWEST",
                  fmt::format("the checkpoint of step {} is the newest of job '{}' ({}); delete it "
                              "with force if you mean it",
                              manifest.step(), name, WithoutNewest(job))};
}

v1::Manifest& CheckpointOf(v1::Job& job, int64_t step) {
  return *std::ranges::find(*job.mutable_checkpoints(), step, &v1::Manifest::step);
}

// A node of the attempt has not acked such an order yet.
bool IsAskedToSave(const State& state, const v1::Attempt& attempt) {
  return std::ranges::any_of(NodesOf(attempt), [&](const NodeId& node) {
    return std::ranges::any_of(CommandsOf(state, node), [&](const auto& entry) {
      const v1::Command& command = entry.second.command();
      return command.has_save_checkpoint() && command.save_checkpoint().epoch() == attempt.epoch();
    });
  });
}

}  // namespace

const v1::Manifest* FindCheckpoint(Draft& draft, int64_t call, const v1::Job& job, int64_t step) {
  const auto found = std::ranges::find(job.checkpoints(), step, &v1::Manifest::step);
  if (found != job.checkpoints().end()) return &*found;
  draft.ReplyError(
      call, absl::StatusCode::kNotFound, "CHECKPOINT_NOT_FOUND",
      fmt::format("job '{}' has no checkpoint of step {}; it has {}", job.metadata().name(), step,
                  job.checkpoints().empty()     ? std::string("none")
                  : job.checkpoints_size() == 1 ? fmt::format("that of step {}", StepsOf(job))
                                                : fmt::format("those of steps {}", StepsOf(job))));
  return nullptr;
}

void PinCheckpoint(Draft& draft, const v1::CoreRequest& request) {
  const v1::Job* job = FindAsked(draft, request);
  if (job == nullptr) return;
  const v1::PinCheckpointRequest& asked = request.pin_checkpoint();
  const v1::Manifest* found = FindCheckpoint(draft, request.call(), *job, asked.step());
  if (found == nullptr) return;

  if (asked.pinned() && !found->pinned()) {
    if (std::string obstacle = AgainstPin(draft, *job, *found); !obstacle.empty()) {
      return draft.ReplyError(request.call(), absl::StatusCode::kFailedPrecondition,
                              "TOO_MANY_PINNED", std::move(obstacle));
    }
  }
  v1::ReplyCall reply;
  reply.set_call(request.call());
  v1::Manifest& answer = *reply.mutable_manifest();
  answer = *found;
  answer.set_pinned(asked.pinned());
  // As a job shows it; the rest is in manifest.json.
  DropTensors(answer);
  if (found->pinned() != asked.pinned()) {
    CheckpointOf(draft.EditJob(job->uid()), asked.step()).set_pinned(asked.pinned());
    draft.AddEvent(job->uid(), v1::SEVERITY_INFO,
                   asked.pinned() ? "CHECKPOINT_PINNED" : "CHECKPOINT_UNPINNED",
                   fmt::format("a user {} the checkpoint of step {}: {}",
                               asked.pinned() ? "pinned" : "unpinned", asked.step(),
                               asked.pinned() ? "it stays, whatever checkpoint.keep says"
                                              : "checkpoint.keep counts it again"),
                   {{"step", std::to_string(asked.step())}, {"directory", answer.directory()}});
  }
  draft.Reply(std::move(reply));
}

void DeleteCheckpoint(Draft& draft, const v1::CoreRequest& request) {
  const v1::Job* job = FindAsked(draft, request);
  if (job == nullptr) return;
  const v1::DeleteCheckpointRequest& asked = request.delete_checkpoint();
  const v1::Manifest* found = FindCheckpoint(draft, request.call(), *job, asked.step());
  if (found == nullptr) return;
  if (std::optional<Obstacle> obstacle = AgainstDeletion(*job, *found, asked.force())) {
    return draft.ReplyError(request.call(), absl::StatusCode::kFailedPrecondition, obstacle->reason,
                            std::move(obstacle->message));
  }
  const NodeId node = RemoveCheckpoint(draft, *job, *found);
  if (node.empty()) {
    return draft.ReplyError(
        request.call(), absl::StatusCode::kFailedPrecondition, "NO_NODE",
        fmt::format("no node is there that could remove {}; start a worker that sees the "
                    "folder, and ask again",
                    found->directory()));
  }
  draft.AddEvent(job->uid(), v1::SEVERITY_INFO, "CHECKPOINT_DELETED",
                 fmt::format("a user deleted the checkpoint of step {}: node '{}' removes {}, {} "
                             "bytes",
                             found->step(), node, found->directory(), found->total_bytes()),
                 {{"step", std::to_string(found->step())},
                  {"bytes", std::to_string(found->total_bytes())},
                  {"directory", found->directory()},
                  {"node", node}});
  v1::Job& edited = draft.EditJob(job->uid());
  edited.mutable_checkpoints()->erase(
      std::ranges::find(edited.checkpoints(), asked.step(), &v1::Manifest::step));
  draft.ReplyJob(request.call(), request.uid());
}

void SaveCheckpoint(Draft& draft, const v1::CoreRequest& request) {
  const v1::Job* job = FindUnfinished(draft, request);
  if (job == nullptr) return;
  const v1::Attempt* attempt = LiveAttempt(*job);
  if (attempt == nullptr || attempt->state() != v1::ATTEMPT_STATE_RUNNING) {
    return draft.ReplyError(
        request.call(), absl::StatusCode::kFailedPrecondition, "NOT_RUNNING",
        fmt::format("job '{}' is {}: its ranks make no steps now, and what it has is in "
                    "its checkpoint of step {}; ask again when it runs",
                    job->metadata().name(), PhaseName(job->phase()), NewestCheckpoint(*job)));
  }
  if (!IsAskedToSave(draft.state(), *attempt)) {
    draft.AddEvent(job->uid(), v1::SEVERITY_INFO, "SAVE_REQUESTED",
                   "a user asked for a checkpoint after the step that it is in");
    AskToSave(draft, *job, "on_demand");
  }
  draft.ReplyJob(request.call(), request.uid());
}

}  // namespace mega::core
