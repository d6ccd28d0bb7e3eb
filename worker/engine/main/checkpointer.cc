#include "worker/engine/main/checkpointer.h"

#include <atomic>

#include "base/log.h"
#include "worker/engine/checkpoint/manifest.h"
#include "worker/engine/checkpoint/shares.h"
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
  v1::StartTraining start;
  int64_t dp_rank;
  models::Decoder& model;
  const optimizer::AdamW& optimizer;
  TrainerLink& link;
  int64_t last_saved = -1;
  std::atomic<int64_t> last_failed{-1};
  std::unique_ptr<checkpoint::Writer> writer;  // last: its thread uses the rest

  void Done(int64_t step, absl::StatusOr<v1::CheckpointPart> part) {
    v1::EngineMessage message;
    if (part.ok()) {
      *message.mutable_checkpoint_part() = std::move(*part);
    } else {
      log::Warn("the checkpoint was not saved; training goes on",
                {{"step", step}, {"error", std::string(part.status().message())}});
      v1::CheckpointFailed& failed = *message.mutable_checkpoint_failed();
      *failed.mutable_rank() = start.rank();
      failed.set_step(step);
      failed.set_message(std::string(part.status().message()));
      last_failed = step;
    }
    link.Send(std::move(message));
  }
};

Checkpointer::Checkpointer(const v1::StartTraining& start, int64_t dp_rank, models::Decoder& model,
                           const optimizer::AdamW& optimizer, Pool& pool, TrainerLink& link)
    : impl_(new Impl{.start = start,
                     .dp_rank = dp_rank,
                     .model = model,
                     .optimizer = optimizer,
                     .link = link}) {
  impl_->writer = std::make_unique<checkpoint::Writer>(
      CheckpointDirectory(start), start.rank(), pool,
      [impl = impl_.get()](int64_t step, absl::StatusOr<v1::CheckpointPart> part) {
        impl->Done(step, std::move(part));
      });
}

Checkpointer::~Checkpointer() = default;

bool Checkpointer::Due(int64_t step) const {
  const v1::Checkpoint& options = impl_->start.spec().checkpoint();
  if (step == impl_->start.plan().steps()) return options.save_on_exit();
  return options.interval_steps() > 0 && step % options.interval_steps() == 0;
}

double Checkpointer::Save(int64_t step, const v1::TrainerState& state) {
  const std::vector<checkpoint::NamedSlice> all = StateSlices(impl_->model, impl_->optimizer);
  const std::vector<checkpoint::NamedSlice> share =
      checkpoint::ShareOf(all, impl_->dp_rank, impl_->start.plan().layout().data_parallel_size());
  impl_->last_saved = step;
  return impl_->writer->Save(
      step, share, impl_->start.rank().rank() == 0 ? std::make_optional(state) : std::nullopt);
}

void Checkpointer::PublishCommitted() {
  while (std::optional<v1::Manifest> manifest = impl_->link.TakeCommitted()) {
    if (impl_->start.rank().rank() != 0) continue;
    const absl::Status written = checkpoint::WriteManifest(*manifest, manifest->directory());
    if (!written.ok()) {
      log::Warn("manifest.json was not written; the coordinator still has the manifest",
                {{"step", manifest->step()}, {"error", std::string(written.message())}});
    }
  }
}

bool Checkpointer::FinishLastSave(absl::Duration timeout) {
  if (impl_->last_saved < 0) return false;
  return impl_->writer->WaitIdle(timeout) && impl_->last_failed < impl_->last_saved;
}

void Checkpointer::WaitForCommit(absl::Duration timeout) {
  if (!impl_->link.WaitForCommit(impl_->last_saved, timeout)) {
    log::Warn("the last checkpoint was not committed in time", {{"step", impl_->last_saved}});
  }
  PublishCommitted();
}

}  // namespace mega::engine
