#include "worker/daemon/devices.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

namespace mega::daemon {
namespace {
constexpr int64_t kMaxDevices = 4096;
}

int64_t UsableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1L, sysconf(_SC_NPROCESSORS_ONLN));
}

absl::StatusOr<std::vector<v1::Device>> CpuDevices(int64_t count) {
  const int64_t cores = UsableCores();
  if (count == 0) count = std::min(cores, kMaxDevices);
  if (count < 1 || count > kMaxDevices) {
    return InvalidArgument("--devices {} is out of range; choose 1 to {}", count, kMaxDevices);
  }
  const int64_t memory = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  std::vector<v1::Device> devices(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    v1::Device& device = devices[static_cast<size_t>(i)];
    device.set_index(i);
    device.set_kind("cpu");
    device.set_memory_bytes(memory / count);
    device.set_threads(std::max<int64_t>(1, cores / count));
  }
  return devices;
}

}  // namespace mega::daemon
