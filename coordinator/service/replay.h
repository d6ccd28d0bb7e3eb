// Runs a journal through the core again. Equal inputs give equal decisions, so a difference means
// that this build decides otherwise than the one that wrote the journal, or a bug.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "base/status.h"

namespace mega::service {

struct ReplayResult {
  int64_t segments = 0;
  int64_t inputs = 0;       // run again
  int64_t differences = 0;  // of them, decided otherwise
  int64_t left_out = 0;     // gaps: the disk was too slow when they came
};

// `folder`: a state folder or the journal in it. Inputs below `from` are run (state needs them) but
// not compared. What differs is printed to `out`, the first of them in full.
absl::StatusOr<ReplayResult> Replay(const std::string& folder, int64_t from, std::ostream& out);

}  // namespace mega::service
