// Field 22 of /proc/<pid>/stat: pid and start time name a process for ever.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace mega::daemon {

// Ticks since boot; 0 when there is no such process.
int64_t StartTimeTicks(pid_t pid);

// 'R', 'S', 'D', 'Z' …; 0 when there is no such process.
char ProcessState(pid_t pid);

}  // namespace mega::daemon
