#include "worker/engine/main/checkpointer.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <thread>

#include "base/log.h"
#include "base/mutex.h"
#include "worker/engine/checkpoint/durable_file.h"
#include "worker/engine/checkpoint/folder_mark.h"
#include "worker/engine/checkpoint/leftovers.h"
#include "worker/engine/checkpoint/manifest.h"
#include "worker/engine/checkpoint/shares.h"
#include "worker/engine/main/network.h"
#include "worker/engine/main/state_slices.h"

namespace mega::engine {
namespace {

// DIRECTORY/NAME-UID, so that jobs of one name do not meet.
std::string CheckpointDirectory(const v1::StartTraining& start) {
  const std::string& given = start.spec().checkpoint().directory();
  const std::string base = given.empty() ? start.run_directory() + "/checkpoints" : given;
  return base + "/" + start.job_name() + "-" + start.rank().job_uid().substr(0, 8);
}

}  // namespace

struct Checkpointer::Impl {
  Impl(const v1::StartTraining& start_in, TrainerLink& link_in)
      : start(start_in),
        directory(CheckpointDirectory(start_in)),
        mark(directory, start_in.rank().epoch()),
        link(link_in) {}

  const v1::StartTraining start;
  const std::string directory;
  checkpoint::FolderMark mark;
  TrainerLink& link;
  std::vector<checkpoint::NamedSlice> share;  // what this rank writes: the same at every save

  Mutex mu;
  int64_t last_step MEGA_GUARDED_BY(mu) = -1;  // of the newest save, and what became of it
  absl::Status last_status MEGA_GUARDED_BY(mu);

  std::set<int64_t> unsettled;  // saves of this rank that were neither committed nor rejected
  std::set<int64_t> kept;       // checkpoints of earlier attempts, as the coordinator names them

  std::unique_ptr<checkpoint::Writer> writer;  // its thread uses what is above
  std::jthread sweeper;                        // removes what earlier attempts left

  void Done(int64_t step, absl::StatusOr<v1::CheckpointPart> part) MEGA_EXCLUDES(mu) {
    if (!part.ok()) return Failed(step, part.status());
    v1::EngineMessage message;
    *message.mutable_checkpoint_part() = *std::move(part);
    link.Send(std::move(message));
  }

  void Failed(int64_t step, const absl::Status& why) MEGA_EXCLUDES(mu) {
    Report(step, why);
    MutexLock lock(mu);
    if (last_step == step) last_status = why;
  }

  void Report(int64_t step, const absl::Status& why) {
    log::Warn("the checkpoint was not saved",
              {{"step", step}, {"error", std::string(why.message())}});
    v1::EngineMessage message;
    v1::CheckpointFailed& failed = *message.mutable_checkpoint_failed();
    *failed.mutable_rank() = start.rank();
    failed.set_step(step);
    failed.set_message(std::string(why.message()));
    link.Send(std::move(message));
  }

  bool IsOwn(const v1::Manifest& manifest) const {
    return manifest.epoch() == start.rank().epoch();
  }

  // One of an earlier attempt is there already, most of the time: it is not when rank 0 died
  // between the commit and this. Its folder may be on another node, or gone. One of a still
  // earlier attempt lies there when its files were damaged and the step was saved again.
  bool IsToWrite(const v1::Manifest& manifest) const {
    if (start.rank().rank() != 0) return false;
    if (IsOwn(manifest)) return true;
    std::error_code error;
    if (!std::filesystem::is_directory(manifest.directory(), error)) return false;
    const absl::StatusOr<v1::Manifest> there = checkpoint::ReadManifest(manifest.directory());
    return !there.ok() || there->epoch() != manifest.epoch();
  }

  void TakeBackBefore(int64_t committed) {
    const auto end = unsettled.lower_bound(committed);
    if (unsettled.begin() == end) return;
    log::Info("takes back saves that were never committed, and now are overtaken",
              {{"committed", committed},
               {"saves", std::distance(unsettled.begin(), end)},
               {"first", *unsettled.begin()}});
    for (auto it = unsettled.begin(); it != end; it = unsettled.erase(it)) writer->Discard(*it);
  }

  void Sweep() {
    sweeper = std::jthread([this, kept = kept] {
      Tell(checkpoint::RemoveOvertaken(directory, kept, start.rank().attempt(), start.rank().rank(),
                                       start.plan().world_size()));
    });
  }

  void Tell(const checkpoint::Leftovers& removed) const {
    if (removed.files == 0) return;
    log::Info("removed what an earlier attempt left of checkpoints that were never complete",
              {{"directory", directory}, {"files", removed.files}, {"bytes", removed.bytes}});
  }

  void SetLast(int64_t step, absl::Status status) MEGA_EXCLUDES(mu) {
    MutexLock lock(mu);
    last_step = step;
    last_status = std::move(status);
  }
};

Checkpointer::Checkpointer(const v1::StartTraining& start, int64_t dp_rank, models::Decoder& model,
                           const optimizer::AdamW& optimizer, Pool& pool, Stream& stream,
                           TrainerLink& link)
    : impl_(std::make_unique<Impl>(start, link)) {
  impl_->share = checkpoint::ShareOf(StateSlices(model, optimizer), dp_rank,
                                     start.plan().layout().data_parallel_size());
  impl_->writer = std::make_unique<checkpoint::Writer>(
      impl_->directory, start.rank(), pool, stream,
      [impl = impl_.get()](int64_t step, absl::StatusOr<v1::CheckpointPart> part) {
        impl->Done(step, std::move(part));
      });
}

Checkpointer::~Checkpointer() { HearVerdicts(); }

void Checkpointer::RemoveLeftovers() const {
  // The coordinator gives the newest that it has committed, and commits no more of earlier
  // attempts.
  impl_->Tell(checkpoint::RemoveLeftovers(impl_->directory, impl_->start.load().step(),
                                          impl_->start.rank().attempt(), impl_->start.rank().rank(),
                                          impl_->start.plan().world_size()));
}

bool Checkpointer::Saves() const {
  const v1::Checkpoint& checkpoint = impl_->start.spec().checkpoint();
  return checkpoint.save_on_exit() || checkpoint.interval_steps() > 0;
}

absl::Status Checkpointer::MakeFolder() const {
  const absl::Status made = checkpoint::MakeFolderDurably(impl_->directory);
  if (!made.ok()) {
    return InvalidArgument("checkpoint.directory: no checkpoint can be written to {}: {}",
                           impl_->directory, std::string(made.message()));
  }
  if (access(impl_->directory.c_str(), W_OK) != 0) {
    return InvalidArgument("checkpoint.directory: no checkpoint can be written to {}: {}",
                           impl_->directory, strerror(errno));
  }
  return absl::OkStatus();
}

bool Checkpointer::NeedsSharedFolder() const { return Saves() && !OnOneNode(impl_->start.plan()); }

absl::Status Checkpointer::LeaveMark() {
  if (impl_->start.rank().rank() != 0) return absl::OkStatus();
  return Annotate(impl_->mark.Leave(), "checkpoint.directory");
}

bool Checkpointer::SeesMark() const { return impl_->mark.IsThere(); }

absl::Status Checkpointer::JudgeMark(int64_t missing) {
  impl_->mark.Remove();
  if (missing == 0) return absl::OkStatus();
  const auto& placed = impl_->start.plan().ranks();
  return InvalidArgument(
      "checkpoint.directory: {} on node '{}' is not one folder of all nodes of this job: {} of {} "
      "ranks do not see there what rank 0 wrote on node '{}', and no checkpoint could be read "
      "back; give the job a checkpoint.directory on storage that all nodes mount",
      impl_->directory, placed[static_cast<int>(impl_->start.rank().rank())].node(), missing,
      placed.size(), placed[0].node());
}

bool Checkpointer::Due(int64_t step) const {
  const int64_t interval = impl_->start.spec().checkpoint().interval_steps();
  return MustSucceed(step) || (interval > 0 && step % interval == 0);
}

bool Checkpointer::MustSucceed(int64_t step) const {
  return step == impl_->start.plan().steps() && impl_->start.spec().checkpoint().save_on_exit();
}

absl::Status Checkpointer::Prepare(absl::Duration timeout) {
  (void)impl_->writer->WaitIdle(timeout);  // if it does not come to that, Prepare says so
  return impl_->writer->Prepare(impl_->share);
}

void Checkpointer::Save(int64_t step, const v1::TrainerState& state) {
  impl_->SetLast(step, absl::OkStatus());
  impl_->unsettled.insert(step);
  const absl::Status started = impl_->writer->Save(
      step, impl_->share,
      impl_->start.rank().rank() == 0 ? std::make_optional(state) : std::nullopt);
  if (!started.ok()) impl_->Failed(step, started);
}

void Checkpointer::Skip(int64_t step, const absl::Status& why) {
  if (MustSucceed(step)) {
    impl_->SetLast(step, why.ok() ? Unavailable("another rank could not save its part") : why);
  }
  if (!why.ok()) impl_->Report(step, why);
}

void Checkpointer::HearVerdicts() {
  for (const int64_t step : impl_->link.TakeRejected()) {
    impl_->unsettled.erase(step);
    impl_->writer->Discard(step);
  }
  while (std::optional<v1::Manifest> manifest = impl_->link.TakeCommitted()) {
    const int64_t step = manifest->step();
    if (impl_->IsToWrite(*manifest)) {
      const absl::Status written = checkpoint::WriteManifest(*manifest, manifest->directory());
      if (!written.ok()) {
        log::Warn("manifest.json was not written; the coordinator still has the manifest",
                  {{"step", step}, {"error", std::string(written.message())}});
      }
    }
    if (impl_->IsOwn(*manifest)) {
      impl_->unsettled.erase(step);
      impl_->TakeBackBefore(step);
    } else if (impl_->kept.insert(step).second && step == impl_->start.load().step()) {
      impl_->Sweep();
    }
  }
}

absl::Status Checkpointer::FinishLastSave(absl::Duration timeout) {
  const bool idle = impl_->writer->WaitIdle(timeout);
  MutexLock lock(impl_->mu);
  if (idle || impl_->last_step < 0) return impl_->last_status;
  return absl::DeadlineExceededError(
      fmt::format("it was not written within {}; the disk of {} is slow or stalled",
                  absl::FormatDuration(timeout), impl_->directory));
}

absl::Status Checkpointer::WaitForCommit(absl::Duration timeout) {
  int64_t step = 0;
  {
    MutexLock lock(impl_->mu);
    step = impl_->last_step;
  }
  const absl::Status committed =
      step >= 0 ? impl_->link.WaitForCommit(step, timeout) : absl::OkStatus();
  HearVerdicts();
  return committed;
}

}  // namespace mega::engine
