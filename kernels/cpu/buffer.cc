#include "kernels/device/buffer.h"

#include <cstdlib>
#include <utility>

namespace mega::kernels {
namespace {
constexpr int64_t kAlignment = 64;  // a cache line, and the widest vector
}

absl::StatusOr<Buffer> Buffer::Allocate(const Device& device, int64_t bytes) {
  MEGA_RETURN_IF_ERROR(CheckDevice(device));
  if (bytes < 0) return InvalidArgument("a buffer of {} bytes was asked for", bytes);
  Buffer buffer;
  buffer.device_ = device;
  buffer.bytes_ = bytes;
  if (bytes == 0) return buffer;
  int64_t padded = 0;
  if (!__builtin_add_overflow(bytes, kAlignment - 1, &padded))
    buffer.data_ = static_cast<std::byte*>(
        std::aligned_alloc(kAlignment, static_cast<size_t>(padded / kAlignment * kAlignment)));
  if (buffer.data_ == nullptr)
    return absl::ResourceExhaustedError(
        fmt::format("device cpu:{} has no {} bytes left; use a smaller micro_batch_size or model, "
                    "or more ranks",
                    device.index, bytes));
  return buffer;
}

Buffer::Buffer(Buffer&& other) noexcept
    : device_(other.device_),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Buffer::~Buffer() { std::free(data_); }

}  // namespace mega::kernels
