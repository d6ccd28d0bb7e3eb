// All device memory of one rank. Freed blocks are kept by size class and given out again, so that a
// step after the first allocates nothing from the device. Knows what every byte is for.
// One thread at a time (the rank's), except the counters, which may be read from any.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "kernels/device/buffer.h"
#include "worker/engine/tensor/tensor.h"

namespace mega {

class Pool {
 public:
  struct Usage {
    int64_t bytes = 0;       // handed out now
    int64_t peak_bytes = 0;  // most at any moment
  };
  static constexpr int kPurposes = 6;

  // reuse=false (memory.efficient_fragmentation: 0): every tensor is its own device allocation.
  explicit Pool(Device device, bool reuse = true);
  ~Pool();  // every tensor must have gone
  Pool(const Pool&) = delete;

  // Uninitialised. Out of device memory is RESOURCE_EXHAUSTED with usage by purpose.
  absl::StatusOr<Tensor> TryAllocate(DType dtype, Shape shape, Purpose purpose);
  absl::StatusOr<Tensor> TryZeros(DType dtype, Shape shape, Purpose purpose);
  // Same; running out aborts the rank with that message (an engine cannot go on without).
  Tensor Allocate(DType dtype, Shape shape, Purpose purpose);
  Tensor Zeros(DType dtype, Shape shape, Purpose purpose);

  Usage UsageOf(Purpose purpose) const;
  Usage Total() const;
  int64_t device_allocations() const;  // calls to the device allocator so far
  const Device& device() const { return device_; }

 private:
  friend class Tensor;
  void Free(TensorView view, int64_t block_bytes, Purpose purpose);

  struct Counter {
    std::atomic<int64_t> bytes{0};
    std::atomic<int64_t> peak{0};
  };
  Device device_;
  bool reuse_;
  std::map<int64_t, std::vector<kernels::Buffer>> free_;  // by block size
  std::map<std::byte*, kernels::Buffer> live_;
  std::array<Counter, kPurposes> counters_;
  Counter total_;
  std::atomic<int64_t> device_allocations_{0};
};

}  // namespace mega
