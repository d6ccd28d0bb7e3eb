// What an attempt that died left on the disk of saves that were never committed.
#pragma once

#include <cstdint>
#include <string>

namespace mega::checkpoint {

struct Leftovers {
  int64_t files = 0;
  int64_t bytes = 0;
};

// Removes from the folders of steps after `committed_step`, the newest that is committed, the files
// of attempts before `attempt`, and folders that are empty then. A folder with a manifest is left
// alone, and so is every file that no Writer of ours made. Ranks share the work by the number of
// the rank that wrote a file: this is `member` of `members`. For the start of an attempt, before
// any rank saves. What cannot be removed stays.
Leftovers RemoveLeftovers(const std::string& directory, int64_t committed_step, int64_t attempt,
                          int64_t member, int64_t members);

}  // namespace mega::checkpoint
