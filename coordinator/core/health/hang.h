// When does an attempt hang, and which rank holds it up? Pure questions about what is known of it.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "coordinator/core/state.h"

namespace mega::core {

// How long the attempt may stand still: no rank's phase, step or collective changes. `rule` says
// where the limit comes from, for people. Infinite: it is not judged.
struct HangLimit {
  absl::Duration limit = absl::InfiniteDuration();
  std::string rule;
};
HangLimit LimitOf(const v1::Job& job, const v1::JobWatch& watch);

// Who holds it up: the rank that did not join the collective that the others wait in, or has not
// come to the phase they are in. `rank` < 0: no rank is behind the others. `node` is empty when
// none is to blame.
struct Laggard {
  int64_t rank = -1;
  NodeId node;
  std::string what;  // "rank 3 on node 'b' never joined collective 41 of group dp (…)"
};
Laggard FindLaggard(const v1::Attempt& attempt, const v1::JobWatch& watch);

}  // namespace mega::core
