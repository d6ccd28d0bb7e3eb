#include "worker/daemon/progress_table.h"

#include <utility>

namespace mega::daemon {
namespace {

v1::WorkerMessage MessageOf(const v1::RankProgress& progress) {
  v1::WorkerMessage message;
  *message.mutable_rank_progress() = progress;
  return message;
}

}  // namespace

void ProgressTable::Told(const RankKey& key, const v1::Progress& progress, absl::Duration now) {
  MutexLock send_lock(send_mu_);
  v1::RankProgress newest;
  {
    MutexLock lock(mu_);
    Entry& entry = ranks_[key];
    newest = entry.newest;
    const bool is_same = newest.phase() == progress.phase() && newest.step() == progress.step() &&
                         newest.collective_seq() == progress.collective_seq() &&
                         newest.group() == progress.group();
    if (is_same) return;
    *newest.mutable_rank() = key.ToProto();
    newest.set_phase(progress.phase());
    newest.set_step(progress.step());
    newest.set_collective_seq(progress.collective_seq());
    newest.set_group(progress.group());
    entry.newest = newest;
    entry.waits = now < entry.sent + heartbeat_;
    if (entry.waits) return;
    entry.sent = now;
  }
  Send(newest);
}

void ProgressTable::Flush(absl::Duration now) {
  MutexLock send_lock(send_mu_);
  std::vector<v1::RankProgress> due;
  {
    MutexLock lock(mu_);
    for (auto& [key, entry] : ranks_) {
      if (!entry.waits || now < entry.sent + heartbeat_) continue;
      entry.waits = false;
      entry.sent = now;
      due.push_back(entry.newest);
    }
  }
  for (const v1::RankProgress& progress : due) Send(progress);
}

void ProgressTable::Forget(const RankKey& key) {
  MutexLock lock(mu_);
  ranks_.erase(key);
}

void ProgressTable::Introduce(std::vector<v1::WorkerMessage>& words) const {
  MutexLock lock(mu_);
  for (const auto& [key, entry] : ranks_) words.push_back(MessageOf(entry.newest));
}

void ProgressTable::Stop() {
  MutexLock lock(send_mu_);
  stopped_ = true;
}

void ProgressTable::Send(const v1::RankProgress& progress) {
  if (!stopped_) send_(MessageOf(progress));
}

}  // namespace mega::daemon
