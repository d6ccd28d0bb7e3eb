#include "kernels/no_cuda/cuda.h"

namespace mega::kernels {

absl::Status CheckCudaDevice(const Device& device) {
  return FailedPrecondition(
      "device cuda:{} was asked for, but this build has no CUDA backend; use a CPU device, or a "
      "release with CUDA configured with -DMEGA_CUDA=ON",
      device.index);
}

}  // namespace mega::kernels
