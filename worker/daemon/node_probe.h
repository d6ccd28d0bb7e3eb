// How the node is doing, from /proc and the file system of the state folder.
#pragma once

#include <cstdint>
#include <string>

namespace mega::daemon {

struct NodeSample {
  double cpu_busy_seconds = 0;  // all cores, since boot
  double cpu_idle_seconds = 0;
  double load_1m = 0;
  int64_t memory_total_bytes = 0;
  int64_t memory_available_bytes = 0;
  int64_t disk_total_bytes = 0;
  int64_t disk_free_bytes = 0;
};

// What <root>/proc/meminfo says; -1 what it does not.
struct MemInfo {
  int64_t total_bytes = -1;
  int64_t available_bytes = -1;
};
MemInfo ReadMemInfo(const std::string& root = "");

// Values that cannot be read stay 0. May block on a hung file system: not for a thread that must
// not.
NodeSample ProbeNode(const std::string& state_dir);

}  // namespace mega::daemon
