// What an unfinished job waits for. There is always something: a job that nothing would ever wake
// is a bug.
#pragma once

#include <string>

#include "coordinator/core/state.h"

namespace mega::core {

// One sentence; empty when nothing would wake the job, or when it has ended.
std::string WaitingFor(const State& state, const JobUid& uid);

}  // namespace mega::core
