// What /proc/<pid>/stat says of a process. Pid and start time name a process for ever.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mega {

struct ProcStat {
  std::string name;              // as the process gives itself: it may hold anything
  char state = 0;                // 'R', 'S', 'D', 'Z' …
  int64_t start_time_ticks = 0;  // since boot; field 22
};

// Of one line of such a file; nothing when it is none.
std::optional<ProcStat> ParseProcStat(std::string_view line);

// 0 when there is no such process.
int64_t StartTimeTicks(pid_t pid);
char ProcessState(pid_t pid);

}  // namespace mega
