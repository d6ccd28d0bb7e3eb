// Whether ranks on several nodes write into one folder: rank 0 leaves a mark, the others look for
// it. Paths prove nothing: the same one is another disk on every node as long as nothing is mounted
// there.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace mega::checkpoint {

class FolderMark {
 public:
  // Of the attempt of this epoch. The name is new in each, so no file system can remember that it
  // was not there.
  FolderMark(const std::string& folder, int64_t epoch);
  ~FolderMark() { Remove(); }
  FolderMark(const FolderMark&) = delete;
  FolderMark& operator=(const FolderMark&) = delete;

  // Makes the mark; those of earlier attempts go.
  absl::Status Leave();
  bool IsThere() const;
  void Remove();  // what Leave made

 private:
  const std::string folder_, path_;
  bool is_left_ = false;
};

}  // namespace mega::checkpoint
