// What a store has promised, beside the store: the revision of its newest commit. A log that is cut
// where a record ends looks like one that never had more; the mark knows better.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "base/unique_fd.h"

namespace mega::state {

class DurableMark {
 public:
  explicit DurableMark(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  // Nothing where there is no file; DATA_LOSS where one is that is no mark, a pipe as well.
  absl::StatusOr<std::optional<int64_t>> Read() const;
  // The file anew, on the disk when it is OK. Before the store it speaks for, so that a store with
  // content and without a mark has lost it.
  absl::Status Make(int64_t revision);
  // After the commit of `revision` is on the disk. Not synced, and no error if it cannot be
  // written: a mark that is too low accuses nobody falsely. In place, in a block that is there
  // already: a power loss leaves the one number or the other.
  void Write(int64_t revision);

 private:
  const std::string path_;
  UniqueFd fd_;
  bool has_failed_ = false;  // told once
};

}  // namespace mega::state
