// What a store has promised, beside the store: the revision of its newest commit. A log that is cut
// where a record ends looks like one that never had more; the mark knows better.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/unique_fd.h"

namespace mega::state {

class DurableMark {
 public:
  // A file that is made with the first mark.
  explicit DurableMark(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  // Nothing where there is no mark, or none that can be read.
  std::optional<int64_t> Read() const;
  // After the commit of `revision` is on the disk. Not synced, and no error if it cannot be
  // written: a mark that is too low accuses nobody falsely.
  void Write(int64_t revision);

 private:
  const std::string path_;
  UniqueFd fd_;
};

}  // namespace mega::state
