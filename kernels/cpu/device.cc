#include "kernels/device/device.h"

#include "dnnl.h"
#include "hwy/targets.h"
#include "kernels/cpu/simd.h"
#include "kernels/no_cuda/cuda.h"

namespace mega::kernels {

absl::Status CheckDevice(const Device& device) {
  if (device.kind == DeviceKind::kCuda) return CheckCudaDevice(device);
  if (device.index < 0)
    return InvalidArgument("device cpu:{} does not exist; the index counts from 0", device.index);
  return absl::OkStatus();
}

std::string NumericLibraries() {
  const dnnl_version_t* dnnl = dnnl_version();
  return fmt::format("dnnl {}.{}.{}, simd {}", dnnl->major, dnnl->minor, dnnl->patch,
                     SimdTargetName());
}

}  // namespace mega::kernels
