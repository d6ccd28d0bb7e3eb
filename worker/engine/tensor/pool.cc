// A freed block waits in `free_` under its size. A request takes the smallest waiting block that is
// at most an eighth too large; sizes repeat from step to step, so in practice it is the exact one.
#include "worker/engine/tensor/pool.h"

#include <cstring>
#include <utility>

#include "base/check.h"

namespace mega {
namespace {

constexpr int64_t kSmall = int64_t{1} << 20;

// Blocks are multiples of 512 B, of 64 KiB from 1 MiB on: near misses in size share blocks.
int64_t BlockBytes(int64_t bytes) {
  const int64_t unit = bytes < kSmall ? 512 : 65536;
  return bytes == 0 ? unit : (bytes + unit - 1) / unit * unit;
}

void Raise(std::atomic<int64_t>& peak, int64_t value) {
  int64_t seen = peak.load(std::memory_order_relaxed);
  while (seen < value && !peak.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace

Pool::Pool(Device device, bool reuse) : device_(device), reuse_(reuse) {}

Pool::~Pool() { MEGA_CHECK_EQ(live_.size(), size_t{0}); }

absl::StatusOr<Tensor> Pool::TryAllocate(DType dtype, Shape shape, Purpose purpose) {
  int64_t bytes = kernels::SizeOf(dtype);
  for (const int64_t dim : shape.dims()) {
    if (dim < 0 || __builtin_mul_overflow(bytes, dim, &bytes) || bytes > (INT64_MAX >> 1))
      return InvalidArgument("a tensor of shape {} of {} has no size in bytes", shape.ToString(),
                             kernels::NameOf(dtype));
  }
  const int64_t block = BlockBytes(bytes);
  kernels::Buffer buffer;
  const auto waiting = free_.lower_bound(block);
  if (reuse_ && waiting != free_.end() && waiting->first <= block + block / 8) {
    buffer = std::move(waiting->second.back());
    waiting->second.pop_back();
    if (waiting->second.empty()) free_.erase(waiting);
  } else {
    absl::StatusOr<kernels::Buffer> fresh = kernels::Buffer::Allocate(device_, block);
    if (!fresh.ok() && !free_.empty()) {
      free_.clear();  // blocks of other sizes may make room
      fresh = kernels::Buffer::Allocate(device_, block);
    }
    if (!fresh.ok()) {
      std::string usage;
      for (int i = 0; i < kPurposes; ++i)
        usage += fmt::format("{}{} {}", i == 0 ? "" : ", ", NameOf(static_cast<Purpose>(i)),
                             UsageOf(static_cast<Purpose>(i)).bytes);
      return absl::ResourceExhaustedError(fmt::format(
          "{} bytes of {} do not fit on the device ({}); in use: {} bytes; lower micro_batch_size "
          "or seq_length, or use more devices",
          bytes, NameOf(purpose), std::string(fresh.status().message()), usage));
    }
    buffer = *std::move(fresh);
    device_allocations_.fetch_add(1, std::memory_order_relaxed);
  }
  for (Counter* counter : {&counters_[static_cast<int>(purpose)], &total_}) {
    const int64_t now = counter->bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    Raise(counter->peak, now);
  }
  std::byte* data = buffer.data();
  const int64_t block_bytes = buffer.bytes();
  live_.emplace(data, std::move(buffer));
  return Tensor(this, TensorView(data, dtype, shape, device_), block_bytes, purpose);
}

Tensor Pool::Allocate(DType dtype, Shape shape, Purpose purpose) {
  absl::StatusOr<Tensor> tensor = TryAllocate(dtype, shape, purpose);
  MEGA_CHECK_OK(tensor);
  return *std::move(tensor);
}

Tensor Pool::Zeros(DType dtype, Shape shape, Purpose purpose) {
  absl::StatusOr<Tensor> tensor = TryZeros(dtype, shape, purpose);
  MEGA_CHECK_OK(tensor);
  return *std::move(tensor);
}

absl::StatusOr<Tensor> Pool::TryZeros(DType dtype, Shape shape, Purpose purpose) {
  MEGA_ASSIGN_OR_RETURN(Tensor tensor, TryAllocate(dtype, shape, purpose));
  // Only the CPU backend exists, and there a stream runs at once.
  std::memset(tensor.view().data(), 0, static_cast<size_t>(tensor.view().bytes()));
  return tensor;
}

void Pool::Free(TensorView view, int64_t block_bytes, Purpose purpose) {
  const auto live = live_.find(view.data());
  MEGA_CHECK(live != live_.end());
  if (reuse_) free_[block_bytes].push_back(std::move(live->second));
  live_.erase(live);
  counters_[static_cast<int>(purpose)].bytes.fetch_sub(view.bytes(), std::memory_order_relaxed);
  total_.bytes.fetch_sub(view.bytes(), std::memory_order_relaxed);
}

Pool::Usage Pool::UsageOf(Purpose purpose) const {
  const Counter& counter = counters_[static_cast<int>(purpose)];
  return {counter.bytes.load(std::memory_order_relaxed),
          counter.peak.load(std::memory_order_relaxed)};
}

Pool::Usage Pool::Total() const {
  return {total_.bytes.load(std::memory_order_relaxed),
          total_.peak.load(std::memory_order_relaxed)};
}

int64_t Pool::device_allocations() const {
  return device_allocations_.load(std::memory_order_relaxed);
}

}  // namespace mega
