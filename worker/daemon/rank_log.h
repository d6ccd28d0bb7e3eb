// One rank's output of one attempt: stdout and stderr in the order they came, in a file that
// rotates. Offsets count bytes of the whole log and stay true over rotations and restarts of the
// worker: a rotated segment's name ends in the offset of its first byte.
//   a1-r0.log          newest segment
//   a1-r0.log.0        older ones, at most kSegments - 1
//   a1-r0.log.16777216
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace mega::daemon {

class RankLog {
 public:
  struct Options {
    int64_t segment_bytes = 16 << 20;
    int segments = 4;  // the oldest is removed beyond that
    int64_t tail_bytes = 64 << 10;
  };
  struct Read {
    int64_t offset = 0;  // of data; later than asked for when the bytes were rotated away
    std::string data;
    bool end = false;  // nothing more, now or ever
  };

  // Opens what is there (a log of an earlier incarnation) or, with `create`, starts a new one.
  static absl::StatusOr<std::shared_ptr<RankLog>> Open(const std::string& path, Options options,
                                                       bool create);

  // How many of the bytes are lost: a full disk costs log bytes, never the rank.
  size_t Append(std::string_view bytes, bool is_stderr);
  // No more will come.
  void Close();

  // At most `max_bytes` from `offset` on. When there are none yet, waits up to `wait` for some.
  absl::StatusOr<Read> ReadAt(int64_t offset, int64_t max_bytes, absl::Duration wait);

  int64_t end_offset() const;
  std::string StderrTail() const;

 private:
  RankLog(std::string path, Options options) : path_(std::move(path)), options_(options) {}

  absl::Status OpenNewest(bool create) MEGA_REQUIRES(mu_);
  void Rotate() MEGA_REQUIRES(mu_);

  const std::string path_;
  const Options options_;

  mutable Mutex mu_;
  CondVar grown_;
  std::map<int64_t, std::string> rotated_ MEGA_GUARDED_BY(mu_);  // first offset → path
  UniqueFd newest_ MEGA_GUARDED_BY(mu_);
  int64_t newest_start_ MEGA_GUARDED_BY(mu_) = 0;
  int64_t end_ MEGA_GUARDED_BY(mu_) = 0;
  bool has_lost_ MEGA_GUARDED_BY(mu_) = false;  // told once
  bool closed_ MEGA_GUARDED_BY(mu_) = false;
  std::string stderr_tail_ MEGA_GUARDED_BY(mu_);
};

}  // namespace mega::daemon
