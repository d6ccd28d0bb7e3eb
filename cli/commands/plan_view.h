// A plan as text.
#pragma once

#include <string>

#include "mega/v1/job.pb.h"
#include "mega/v1/plan.pb.h"

namespace mega::cli {

// Layout, work, memory by purpose, reasons: a few lines.
std::string PlanText(const v1::Plan& plan);
// Where it would wait, and who would give way; "" for a plan that was made offline.
std::string QueueText(const v1::PlanJobResponse& response);
// Which rank runs where.
std::string PlacementText(const v1::Plan& plan);

}  // namespace mega::cli
