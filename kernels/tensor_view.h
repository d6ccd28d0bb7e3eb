// A typed, shaped window on device memory that somebody else owns. Cheap to copy.
// Contiguous, row-major. At most 6 dimensions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "base/check.h"
#include "kernels/device/device.h"
#include "kernels/device/dtype.h"

namespace mega::kernels {

class Shape {
 public:
  static constexpr int kMaxRank = 6;
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims)
      : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims) : rank_(static_cast<int>(dims.size())) {
    MEGA_CHECK_LE(rank_, kMaxRank);
    for (int i = 0; i < rank_; ++i) dims_[i] = dims[i];
  }
  int rank() const { return rank_; }
  int64_t operator[](int i) const { return dims_[i]; }
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }
  int64_t elements() const {
    int64_t n = 1;
    for (int i = 0; i < rank_; ++i) n *= dims_[i];
    return n;
  }
  std::string ToString() const;  // "[2, 3]"
  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i)
      if (a.dims_[i] != b.dims_[i]) return false;
    return true;
  }

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

// What As<T, R>() gives: indexes like mdspan.
template <typename T, int R>
class Grid {
 public:
  Grid(T* data, const Shape& shape) : data_(data) {
    int64_t stride = 1;
    for (int i = R - 1; i >= 0; --i) {
      extents_[i] = shape[i];
      strides_[i] = stride;
      stride *= shape[i];
    }
  }
  template <typename... I>
  T& operator()(I... i) const {
    static_assert(sizeof...(I) == R);
    const std::array<int64_t, R> at{static_cast<int64_t>(i)...};
    int64_t offset = 0;
    for (int d = 0; d < R; ++d) offset += at[d] * strides_[d];
    return data_[offset];
  }
  int64_t extent(int i) const { return extents_[i]; }
  T* data() const { return data_; }

 private:
  T* data_;
  std::array<int64_t, R> extents_{};
  std::array<int64_t, R> strides_{};
};

class TensorView {
 public:
  TensorView() = default;
  TensorView(void* data, DType dtype, Shape shape, Device device = {})
      : data_(static_cast<std::byte*>(data)), shape_(shape), dtype_(dtype), device_(device) {}

  std::byte* data() const { return data_; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  const Device& device() const { return device_; }
  int rank() const { return shape_.rank(); }
  int64_t dim(int i) const { return shape_[i]; }
  int64_t elements() const { return shape_.elements(); }
  int64_t bytes() const { return elements() * SizeOf(dtype_); }
  bool empty() const { return elements() == 0; }

  // Same memory, another shape with as many elements.
  TensorView View(Shape shape) const {
    MEGA_CHECK_EQ(shape.elements(), elements());
    return TensorView(data_, dtype_, shape, device_);
  }
  // Rows [begin, begin + count) of the first dimension.
  TensorView Rows(int64_t begin, int64_t count) const;

  template <typename T>
  T* ptr() const {
    MEGA_CHECK(DTypeOf<std::remove_const_t<T>>::value == dtype_);
    return reinterpret_cast<T*>(data_);
  }
  template <typename T>
  std::span<T> flat() const {
    return {ptr<T>(), static_cast<size_t>(elements())};
  }
  template <typename T, int R>
  Grid<T, R> As() const {
    MEGA_CHECK_EQ(rank(), R);
    return Grid<T, R>(ptr<T>(), shape_);
  }

 private:
  std::byte* data_ = nullptr;
  Shape shape_;
  DType dtype_ = DType::kF32;
  Device device_;
};

}  // namespace mega::kernels
