// A taste of the trained model for the end of `run`.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "mega/v1/job.pb.h"

namespace mega::cli {

// A short prompt out of the job's own data: the start of its first text file. Empty for built
// datasets.
std::string PromptFromData(const v1::Data& data);

// Runs `mega-engine generate`. `scratch` is a folder for its output. CANCELLED when `interrupted`
// says so; DEADLINE_EXCEEDED after a minute.
absl::StatusOr<std::string> GenerateSample(const std::string& model, const std::string& prompt,
                                           const std::string& scratch,
                                           const std::function<bool()>& interrupted);

}  // namespace mega::cli
