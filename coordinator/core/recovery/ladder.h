// Which rung of the recovery ladder is taken after a failure: the first rule of the job that is
// about it says so, else the job's ladder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "coordinator/core/draft.h"

namespace mega::core {

struct Rung {
  std::string_view name;   // records.h
  std::string decided_by;  // what chose it, and why; one sentence
  bool by_rule = false;
  bool leaves_node_out = false;  // the one to blame is not taken again in the window
};

// `job`'s newest attempt has failed, and may be followed by another.
Rung ChooseRung(const Draft& draft, const v1::Job& job);

}  // namespace mega::core
