// Logs of jobs in <state-dir>/jobs, which outlive their jobs so that they can be read, and are
// bounded so that they do not fill the disk. Only logs are ever removed (the folder of a job may
// hold its checkpoints and data, too), then the folder, if nothing else is in it; no link is
// followed.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace mega::daemon {

struct JobLogs {
  std::string job_uid;
  int64_t bytes = 0;
  absl::Time written;  // the newest of them
};

struct LogLimits {
  int64_t bytes = int64_t{8} << 30;
  int64_t jobs = 1000;
};

// "a1-r0.log", "a1-r0.log.16777216". Nothing else is.
bool IsLogName(const std::string& name);

// May wait for the disk. What cannot be read is left out.
std::vector<JobLogs> ListLogs(const std::string& state_dir);

// Whose logs must go, the oldest first, for the rest to be within the limits. Live jobs count, and
// stay; so does the newest that is not live.
std::vector<JobLogs> LogsBeyond(std::vector<JobLogs> logs, const std::set<std::string>& live,
                                const LogLimits& limits);

// How many bytes that freed.
int64_t RemoveLogs(const std::string& state_dir, const std::string& job_uid);

}  // namespace mega::daemon
