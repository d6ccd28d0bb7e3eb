#include "worker/daemon/leftovers.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "absl/time/clock.h"
#include "base/log.h"
#include "base/proc_stat.h"
#include "base/unique_fd.h"
#include "worker/daemon/rank_key.h"
#include "worker/daemon/rank_log.h"
#include "worker/daemon/run_paths.h"

namespace mega::daemon {
namespace {

enum class End { kGoneAlready, kKilled, kAlive };

End Kill(const v1::RecordedRank& rank, absl::Time deadline) {
  const pid_t pid = static_cast<pid_t>(rank.pid());
  if (pid <= 1) return End::kGoneAlready;
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  // The descriptor first: if the start time fits after it, it is that process for ever.
  if (!process || StartTimeTicks(pid) != rank.start_time_ticks()) return End::kGoneAlready;
  kill(-pid, SIGKILL);
  syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
  pollfd ended{process.get(), POLLIN, 0};
  const int64_t left = std::max<int64_t>(0, absl::ToInt64Milliseconds(deadline - absl::Now()));
  return poll(&ended, 1, static_cast<int>(left)) == 1 ? End::kKilled : End::kAlive;
}

// The stderr of that time is known only as part of the log.
std::string EndOfLog(const std::string& state_dir, const RankKey& key) {
  const auto log = RankLog::Open(LogPath(state_dir, key.job_uid, key.attempt, key.rank), {}, false);
  if (!log.ok()) return "";
  constexpr int64_t kTail = 64 << 10;
  const int64_t start = std::max<int64_t>(0, (*log)->end_offset() - kTail);
  const auto read = (*log)->ReadAt(start, kTail, absl::ZeroDuration());
  return read.ok() ? read->data : "";
}

}  // namespace

bool KillLeftovers(v1::WorkerRecord& record, const std::string& boot_id,
                   const std::string& state_dir, absl::Duration wait) {
  const absl::Time deadline = absl::Now() + wait;
  const bool same_boot = record.boot_id() == boot_id;
  google::protobuf::RepeatedPtrField<v1::RecordedRank> alive;
  for (const v1::RecordedRank& rank : record.ranks()) {
    const RankKey key = RankKey::From(rank.rank());
    const End end = same_boot ? Kill(rank, deadline) : End::kGoneAlready;
    if (end == End::kAlive) {
      log::Error("an engine of an earlier worker does not die of SIGKILL; its device stays taken",
                 {{"rank", key.Text()}, {"pid", rank.pid()}});
      *alive.Add() = rank;
      continue;
    }
    v1::RankExited& exited = *record.add_exited();
    *exited.mutable_rank() = rank.rank();
    v1::ExitStatus& exit = *exited.mutable_exit();
    if (end == End::kKilled) {
      log::Info("killed an engine of an earlier worker",
                {{"rank", key.Text()}, {"pid", rank.pid()}});
      exit.set_signal(SIGKILL);
      exit.set_killed_by_worker(true);
      exit.set_message("the worker was restarted; it ended what the earlier one had left");
    } else {
      exit.set_code(-1);
      exit.set_message(!same_boot        ? "the node was restarted"
                       : rank.pid() == 0 ? "the worker ended before it had started the rank"
                                         : "ended while no worker ran; its exit code is unknown");
    }
    exit.set_stderr_tail(EndOfLog(state_dir, key));
  }
  const bool all_gone = alive.empty();
  record.mutable_ranks()->Swap(&alive);
  return all_gone;
}

}  // namespace mega::daemon
