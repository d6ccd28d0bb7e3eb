#include "worker/daemon/checkpoint_report.h"

#include "base/log.h"
#include "base/message_size.h"

namespace mega::daemon {
namespace {

// Leaves room for what frames the part, and for a few such in one hello.
constexpr size_t kMostPartBytes = kMostMessageBytes / 4;

}  // namespace

v1::WorkerMessage CheckpointReport(const RankKey& key, v1::CheckpointPart part) {
  v1::WorkerMessage message;
  part.set_job_uid(key.job_uid);
  part.set_attempt(key.attempt);
  part.set_epoch(key.epoch);
  part.set_rank(key.rank);
  const size_t bytes = part.ByteSizeLong();
  if (bytes <= kMostPartBytes) {
    *message.mutable_checkpoint_part() = std::move(part);
    return message;
  }
  v1::CheckpointFailed& failed = *message.mutable_checkpoint_failed();
  *failed.mutable_rank() = key.ToProto();
  failed.set_step(part.step());
  failed.set_message(
      fmt::format("the list of its {} slices and {} tensors takes {} bytes, and a message takes at "
                  "most {}; use fewer shards a tensor",
                  part.slices_size(), part.tensors_size(), bytes, kMostPartBytes));
  log::Warn("a checkpoint's part is too large to report",
            {{"rank", key.Text()}, {"step", part.step()}, {"bytes", bytes}});
  return message;
}

}  // namespace mega::daemon
