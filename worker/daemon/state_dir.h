// <state-dir>: worker.json (what the next incarnation must know), removals.jsonl (removals.h),
// jobs/<uid>/ (run directories with logs), lock (one worker at a time).
#pragma once

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "mega/v1/worker.pb.h"

namespace mega::daemon {

class StateDir {
 public:
  // Creates what is missing and locks it. FAILED_PRECONDITION when another worker holds it.
  static absl::StatusOr<std::unique_ptr<StateDir>> Open(const std::string& path);

  const std::string& path() const { return path_; }

  // An empty record when there is none.
  absl::StatusOr<v1::WorkerRecord> ReadRecord() const;
  // Durable when it returns OK.
  absl::Status WriteRecord(const v1::WorkerRecord& record) const;

  // <state-dir>/jobs/<uid>, created. INVALID_ARGUMENT for a uid that is no plain name.
  absl::StatusOr<std::string> RunDirectory(const std::string& job_uid) const;

 private:
  StateDir(std::string path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  const std::string path_;  // absolute
  const UniqueFd lock_;
};

// Of the worker that finds `last` in its state folder (0: none): the time in ns, or one more than
// `last` where the clock was set back. DATA_LOSS when there is none above it.
absl::StatusOr<int64_t> NextIncarnation(int64_t last, absl::Time now);

// A name for a new state folder that no other has.
std::string DrawStateFolderId();

// Letters, digits, '-', '_', at most 128: safe as a name in a folder.
bool IsPlainName(const std::string& name);

}  // namespace mega::daemon
