// How a job's phase changes, and the words for it.
#pragma once

#include <string>
#include <string_view>

#include "coordinator/core/draft.h"

namespace mega::core {

// "RUNNING" of JOB_PHASE_RUNNING.
std::string_view PhaseName(v1::JobPhase phase);
// "code 1", "signal 9 (SIGKILL)", with the engine's last words if there are any.
std::string DescribeExit(const v1::ExitStatus& exit);
// Into a terminal phase, for ever, with its event.
void EndJob(Draft& draft, v1::Job& job, v1::JobPhase phase, std::string reason);

}  // namespace mega::core
