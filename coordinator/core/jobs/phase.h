// How a job's phase changes, and the words for it.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "coordinator/core/draft.h"

namespace mega::core {

// "RUNNING" of JOB_PHASE_RUNNING.
std::string_view PhaseName(v1::JobPhase phase);
// "code 1", "signal 9 (SIGKILL)", with the engine's last words if there are any.
std::string DescribeExit(const v1::ExitStatus& exit);
// The first rank that ended by itself with one of `codes`: its peers fell over it, and may have
// been heard of first. Null if none did.
const v1::RankState* FindOwnExit(const v1::Attempt& attempt, std::initializer_list<int> codes);
// Why the job is in its phase; nothing is written that is so already.
void SetReason(Draft& draft, const JobUid& uid, const std::string& reason);
// Into a terminal phase, for ever, with its event.
void EndJob(Draft& draft, v1::Job& job, v1::JobPhase phase, std::string reason);

}  // namespace mega::core
