// Asks the engine what it is: `mega-engine version -o json`.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"

namespace mega::daemon {

struct EngineVersion {
  std::string version;
  std::vector<std::string> numeric_libraries;  // "dnnl 2.6.3"
};

absl::StatusOr<EngineVersion> AskEngineVersion(const std::string& engine, absl::Duration timeout);

// What an engine needs of the world, and nothing else of ours: PATH, HOME and the like, and
// `threads` for libraries that would otherwise take every core and spin on it.
std::vector<std::string> EngineEnvironment(int64_t threads);

}  // namespace mega::daemon
