// What an attempt that died left on the disk of saves that were never committed.
// Removed are only files that a Writer of an attempt before `attempt` made, and folders that are
// empty then; a folder with a manifest is left alone. Ranks share the work by the number of the
// rank that wrote a file: this is `member` of `members`. What cannot be removed stays.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace mega::checkpoint {

struct Leftovers {
  int64_t files = 0;
  int64_t bytes = 0;
};

// Of steps after `committed_step`, the newest that is committed. For the start of an attempt,
// before any rank saves.
Leftovers RemoveLeftovers(const std::string& directory, int64_t committed_step, int64_t attempt,
                          int64_t member, int64_t members);
// Of steps that were overtaken by a commit: those before the newest in `kept`, the checkpoints that
// the job keeps, all of them or as many as an attempt is told (manifest/kept.h). A node that does
// not share its folder with rank 0 sees no manifest, so that these alone tell a checkpoint from a
// leftover there. At any time, for nobody saves such a step any more.
Leftovers RemoveOvertaken(const std::string& directory, const std::set<int64_t>& kept,
                          int64_t attempt, int64_t member, int64_t members);

}  // namespace mega::checkpoint
