// Files that a job names and this machine lacks: only `run` may ask, whose ranks run here.
// (model.hf is read by every command that loads a job.)
#pragma once

#include <string>
#include <vector>

#include "cli/spec/job_yaml.h"

namespace mega::cli {

std::vector<Problem> MissingFiles(const JobFile& job, const std::string& source);

}  // namespace mega::cli
