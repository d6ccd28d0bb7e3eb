#include "kernels/device/buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

namespace mega::kernels {
namespace {
constexpr int64_t kAlignment = 64;  // a cache line, and the widest vector
// Large buffers ask for huge pages: 512 times fewer page faults in the first step, and matrix
// products that walk long columns miss the TLB less.
constexpr int64_t kHugePage = int64_t{2} << 20;
}  // namespace

absl::StatusOr<Buffer> Buffer::Allocate(const Device& device, int64_t bytes) {
  MEGA_RETURN_IF_ERROR(CheckDevice(device));
  if (bytes < 0) return InvalidArgument("a buffer of {} bytes was asked for", bytes);
  Buffer buffer;
  buffer.device_ = device;
  buffer.bytes_ = bytes;
  if (bytes == 0) return buffer;
  const int64_t alignment = bytes >= kHugePage ? kHugePage : kAlignment;
  int64_t padded = 0;
  if (!__builtin_add_overflow(bytes, alignment - 1, &padded)) {
    padded = padded / alignment * alignment;
    buffer.data_ = static_cast<std::byte*>(
        std::aligned_alloc(static_cast<size_t>(alignment), static_cast<size_t>(padded)));
  }
  if (buffer.data_ == nullptr)
    return absl::ResourceExhaustedError(
        fmt::format("device cpu:{} has no {} bytes left ({} are free); use a smaller "
                    "micro_batch_size or model, or more ranks",
                    device.index, bytes, sysconf(_SC_AVPHYS_PAGES) * sysconf(_SC_PAGESIZE)));
  // Advice: where the kernel declines, nothing is lost.
  if (alignment == kHugePage) madvise(buffer.data_, static_cast<size_t>(padded), MADV_HUGEPAGE);
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
