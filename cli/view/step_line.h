// One optimizer step as a line.
#pragma once

#include <string>

#include "mega/v1/telemetry.pb.h"

namespace mega::cli {

// "step 1/20 loss 5.5452 grad_norm 1.23 lr 3.0e-05 tokens/s 12345 mfu 31.2%", and on steps that
// evaluated " validation_loss 2.1234". Stable: scripts match it.
std::string StepLine(const v1::StepReport& report);

}  // namespace mega::cli
