// Where things of a run lie below <state-dir>.
#pragma once

#include <cstdint>
#include <string>

#include "fmt/core.h"

namespace mega::daemon {

inline std::string LogPath(const std::string& state_dir, const std::string& job_uid,
                           int64_t attempt, int64_t rank) {
  return fmt::format("{}/jobs/{}/a{}-r{}.log", state_dir, job_uid, attempt, rank);
}

}  // namespace mega::daemon
