// One event of a job as a line.
#pragma once

#include <string>

#include "cli/view/terminal.h"
#include "mega/v1/telemetry.pb.h"

namespace mega::cli {

// "RANK_EXITED attempt 1: rank 1 on node-1 ended by signal 9"; coloured by severity.
std::string EventLine(const v1::JobEvent& event, const Palette& palette);

}  // namespace mega::cli
