// A job's ledger of time, for people and for scripts.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "cli/view/terminal.h"
#include "mega/v1/job.pb.h"
#include "nlohmann/json_fwd.hpp"

namespace mega::cli {

// The share that went into steps that stay, then each cause with a bar. `now` ends the open span.
std::string GoodputText(const v1::Job& job, absl::Time now, const Palette& palette);
// "91.3% of 12.4 device-hours; rework 5.1%, starting 2.0%"; empty before devices were held.
std::string GoodputLine(const v1::Job& job, absl::Time now);
// {goodput, wall_seconds, device_seconds, open_cause, causes: [{cause, wall_seconds, …, share}]}
nlohmann::ordered_json GoodputJson(const v1::Job& job, absl::Time now);

}  // namespace mega::cli
