// A job that fails again and again must not grow without bound: what old attempts keep.
#pragma once

#include "mega/v1/job.pb.h"

namespace mega::core {

// The newest few attempts stay whole, older ones keep their outcome, the oldest go.
void TrimHistory(v1::Job& job);

}  // namespace mega::core
