// Where memory lives and work runs. A process owns one device; "cpu" is the embedded default.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"

namespace mega::kernels {

enum class DeviceKind : uint8_t { kCpu, kCuda };

struct Device {
  DeviceKind kind = DeviceKind::kCpu;
  int index = 0;
  friend bool operator==(const Device&, const Device&) = default;
};

// FAILED_PRECONDITION for kCuda in a build without it; the message says how to enable it.
absl::Status CheckDevice(const Device& device);

// "dnnl 2.6.3": libraries whose version changes results. Ranks of one attempt must agree.
std::string NumericLibraries();

}  // namespace mega::kernels
