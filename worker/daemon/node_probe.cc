#include "worker/daemon/node_probe.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>

#include "base/disk_space.h"

namespace mega::daemon {
namespace {

void ReadCpu(NodeSample& sample) {
  std::ifstream file("/proc/stat");
  std::string name;
  double user = 0, nice = 0, system = 0, idle = 0, io_wait = 0, irq = 0, soft_irq = 0, steal = 0;
  file >> name >> user >> nice >> system >> idle >> io_wait >> irq >> soft_irq >> steal;
  const double ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  sample.cpu_busy_seconds = (user + nice + system + irq + soft_irq + steal) / ticks_per_second;
  sample.cpu_idle_seconds = (idle + io_wait) / ticks_per_second;
}

}  // namespace

MemInfo ReadMemInfo(const std::string& root) {
  MemInfo memory;
  std::ifstream file(root + "/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string name;
    int64_t kib = 0;
    fields >> name >> kib;
    if (name == "MemTotal:") memory.total_bytes = kib * 1024;
    if (name == "MemAvailable:") memory.available_bytes = kib * 1024;
  }
  return memory;
}

NodeSample ProbeNode(const std::string& state_dir) {
  NodeSample sample;
  ReadCpu(sample);
  const MemInfo memory = ReadMemInfo();
  sample.memory_total_bytes = std::max<int64_t>(0, memory.total_bytes);
  sample.memory_available_bytes = std::max<int64_t>(0, memory.available_bytes);
  std::ifstream("/proc/loadavg") >> sample.load_1m;
  if (const std::optional<DiskSpace> disk = DiskSpaceAt(state_dir); disk.has_value()) {
    sample.disk_total_bytes = disk->total_bytes;
    sample.disk_free_bytes = disk->free_bytes;
  }
  return sample;
}

}  // namespace mega::daemon
