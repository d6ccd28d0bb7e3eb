// The one line that `run` keeps rewriting on a terminal.
#pragma once

#include <optional>
#include <string>

#include "mega/v1/telemetry.pb.h"

namespace mega::cli {

struct Progress {
  v1::StepReport last;                    // newest step; step 0 before the first
  std::optional<double> validation_loss;  // newest
  int64_t restarts = 0;
  std::string state;            // what happens before the first step: "starting ranks"
  double seconds_per_step = 0;  // smoothed; 0: unknown
};

// Smooths the time of a step for the ETA.
void AddStep(const v1::StepReport& report, Progress& progress);

// At most `width` columns: figures that do not fit fall away from the right, a bar takes what is
// left.
std::string ProgressLine(const Progress& progress, int width);

}  // namespace mega::cli
