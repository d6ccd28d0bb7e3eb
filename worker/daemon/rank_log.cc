#include "worker/daemon/rank_log.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/numbers.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/read_file.h"

namespace mega::daemon {
namespace fs = std::filesystem;

absl::StatusOr<std::shared_ptr<RankLog>> RankLog::Open(const std::string& path, Options options,
                                                       bool create) {
  std::shared_ptr<RankLog> log(new RankLog(path, options));
  MutexLock lock(log->mu_);
  const std::string prefix = fs::path(path).filename().string() + ".";
  // Without its rotated segments a log would begin at 0 again, and write over the first of them.
  MEGA_ASSIGN_OR_RETURN(const std::vector<fs::directory_entry> entries,
                        ListFolder(fs::path(path).parent_path()));
  for (const fs::directory_entry& entry : entries) {
    const std::string name = entry.path().filename().string();
    int64_t start = 0;
    if (name.starts_with(prefix) && absl::SimpleAtoi(name.substr(prefix.size()), &start) &&
        start >= 0) {
      log->rotated_[start] = entry.path().string();
    }
  }
  MEGA_RETURN_IF_ERROR(log->OpenNewest(create));
  log->closed_ = !create;
  return log;
}

absl::Status RankLog::OpenNewest(bool create) {
  if (!rotated_.empty()) {
    const auto& [start, path] = *rotated_.rbegin();
    struct stat info {};
    if (stat(path.c_str(), &info) != 0)
      return ErrnoStatus(errno, fmt::format("cannot read {}", path));
    newest_start_ = start + info.st_size;
  }
  newest_ = UniqueFd(open(path_.c_str(), (create ? O_CREAT : 0) | O_RDWR | O_CLOEXEC, 0644));
  if (!newest_) return ErrnoStatus(errno, fmt::format("cannot open the log {}", path_));
  struct stat info {};
  if (fstat(newest_.get(), &info) != 0)
    return ErrnoStatus(errno, fmt::format("cannot read {}", path_));
  if (!S_ISREG(info.st_mode)) return InvalidArgument("the log {} is not a regular file", path_);
  end_ = newest_start_ + info.st_size;
  return absl::OkStatus();
}

void RankLog::Rotate() {
  const std::string older = fmt::format("{}.{}", path_, newest_start_);
  if (rename(path_.c_str(), older.c_str()) != 0)
    return;  // grows on; tried again at the next append
  UniqueFd next(open(path_.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0644));
  if (!next) {
    if (rename(older.c_str(), path_.c_str()) != 0) {
      log::Warn("cannot put a log back that could not be rotated", {{"log", path_}});
    }
    return;
  }
  rotated_[newest_start_] = older;
  newest_ = std::move(next);
  newest_start_ = end_;
  while (static_cast<int>(rotated_.size()) > options_.segments - 1) {
    unlink(rotated_.begin()->second.c_str());
    rotated_.erase(rotated_.begin());
  }
}

size_t RankLog::Append(std::string_view bytes, bool is_stderr) {
  MutexLock lock(mu_);
  if (is_stderr) {
    const size_t tail_bytes = static_cast<size_t>(options_.tail_bytes);
    stderr_tail_.append(bytes.substr(bytes.size() - std::min(bytes.size(), tail_bytes)));
    if (stderr_tail_.size() > 2 * tail_bytes) {
      stderr_tail_.erase(0, stderr_tail_.size() - tail_bytes);
    }
  }
  while (!bytes.empty()) {
    if (end_ - newest_start_ >= options_.segment_bytes) Rotate();
    const int64_t room = options_.segment_bytes - (end_ - newest_start_);
    // No room left means that rotation failed: the newest segment grows on.
    const size_t part = room > 0 ? std::min(bytes.size(), static_cast<size_t>(room)) : bytes.size();
    const ssize_t written = pwrite(newest_.get(), bytes.data(), part, end_ - newest_start_);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      if (!std::exchange(has_lost_, true)) {
        log::Error("cannot write a rank's log; its output is dropped until that works again",
                   {{"log", path_}, {"error", std::string(ErrnoStatus(errno, "write").message())}});
      }
      break;
    }
    end_ += written;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  grown_.NotifyAll();
  return bytes.size();
}

void RankLog::Close() {
  MutexLock lock(mu_);
  closed_ = true;
  grown_.NotifyAll();
}

absl::StatusOr<RankLog::Read> RankLog::ReadAt(int64_t offset, int64_t max_bytes,
                                              absl::Duration wait) {
  const auto deadline = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(wait);
  Read read;
  UniqueFd opened;
  int fd = -1;
  int64_t start = 0;
  int64_t segment_end = 0;
  MutexLock lock(mu_);
  const int64_t oldest = rotated_.empty() ? newest_start_ : rotated_.begin()->first;
  offset = std::max(offset, oldest);
  while (offset >= end_ && !closed_) {
    if (!grown_.WaitUntil(mu_, deadline)) break;
  }
  if (offset >= end_) {
    // Asked for bytes that do not exist: the reader is told where the log ends.
    read.offset = std::min(offset, end_);
    read.end = closed_;
    return read;
  }
  if (offset >= newest_start_) {
    fd = newest_.get();
    start = newest_start_;
    segment_end = end_;
  } else {
    auto next = rotated_.upper_bound(offset);
    segment_end = next == rotated_.end() ? newest_start_ : next->first;
    const auto& [first, path] = *std::prev(next);
    MEGA_ASSIGN_OR_RETURN(opened, OpenRegularFile(path));
    fd = opened.get();
    start = first;
  }
  read.offset = offset;
  read.data.resize(static_cast<size_t>(std::min(max_bytes, segment_end - offset)));
  ssize_t got;
  do {
    got = pread(fd, read.data.data(), read.data.size(), offset - start);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) {
    return ErrnoStatus(got < 0 ? errno : EIO, fmt::format("cannot read the log {}", path_));
  }
  read.data.resize(static_cast<size_t>(got));
  read.end = closed_ && offset + got == end_;
  return read;
}

int64_t RankLog::end_offset() const {
  MutexLock lock(mu_);
  return end_;
}

std::string RankLog::StderrTail() const {
  MutexLock lock(mu_);
  const size_t tail_bytes = static_cast<size_t>(options_.tail_bytes);
  return stderr_tail_.size() <= tail_bytes ? stderr_tail_
                                           : stderr_tail_.substr(stderr_tail_.size() - tail_bytes);
}

}  // namespace mega::daemon
