// Owned device memory, 64-byte aligned, uninitialised. Movable only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/device/device.h"

namespace mega::kernels {

class Buffer {
 public:
  Buffer() = default;
  // RESOURCE_EXHAUSTED when the device has no such memory.
  static absl::StatusOr<Buffer> Allocate(const Device& device, int64_t bytes);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  const Device& device() const { return device_; }

 private:
  Device device_;
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace mega::kernels
