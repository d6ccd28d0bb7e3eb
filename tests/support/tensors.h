// A tensor that owns its memory, for tests: no pool, no rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/tensor_view.h"

namespace mega::testing {

class HostTensor {
 public:
  HostTensor() = default;
  // Filled with 0xEE bytes: an element that an op forgot to write stands out.
  explicit HostTensor(kernels::Shape shape, kernels::DType dtype = kernels::DType::kF32);

  static HostTensor Zeros(kernels::Shape shape);
  // Standard normal times `scale`; the same seed gives the same values.
  static HostTensor Random(kernels::Shape shape, uint64_t seed, float scale = 1);
  static HostTensor Of(std::vector<int32_t> values);
  static HostTensor Of(std::span<const float> values, kernels::Shape shape);

  const kernels::Shape& shape() const { return shape_; }
  kernels::DType dtype() const { return dtype_; }
  int64_t dim(int i) const { return shape_[i]; }
  int64_t elements() const { return shape_.elements(); }
  kernels::TensorView view() { return {bytes_.data(), dtype_, shape_}; }
  operator kernels::TensorView() { return view(); }  // NOLINT: ops take views
  kernels::TensorView View(kernels::Shape shape) { return view().View(shape); }
  std::span<float> f32() { return view().flat<float>(); }
  std::span<const float> f32() const { return const_cast<HostTensor*>(this)->f32(); }
  std::span<int32_t> i32() { return view().flat<int32_t>(); }
  std::span<std::byte> bytes() { return bytes_; }

  // Bit for bit.
  friend bool operator==(const HostTensor& a, const HostTensor& b) {
    return a.shape_ == b.shape_ && a.dtype_ == b.dtype_ && a.bytes_ == b.bytes_;
  }

 private:
  kernels::Shape shape_;
  kernels::DType dtype_ = kernels::DType::kF32;
  std::vector<std::byte> bytes_;
};

}  // namespace mega::testing
