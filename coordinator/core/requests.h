// What users and operators ask of jobs, nodes and namespaces: each verb's handler lies with its
// subject (jobs/, nodes/, queue/, recovery/); here is only who handles what.
#pragma once

#include "coordinator/core/draft.h"

namespace mega::core {

// Answers the call, always.
void OnRequest(Draft& draft, const v1::CoreRequest& request);

}  // namespace mega::core
