// What the CPU build knows of CUDA: how to say that it is absent.
#pragma once

#include "base/status.h"
#include "kernels/device/device.h"

namespace mega::kernels {

// OK when `device` can be used; here never, and the message says how to enable CUDA.
absl::Status CheckCudaDevice(const Device& device);

}  // namespace mega::kernels
