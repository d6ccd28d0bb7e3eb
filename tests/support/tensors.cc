#include "tests/support/tensors.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/philox.h"

namespace mega::testing {

using kernels::DType;
using kernels::Shape;

HostTensor::HostTensor(Shape shape, DType dtype)
    : shape_(shape),
      dtype_(dtype),
      bytes_(static_cast<size_t>(shape.elements() * kernels::SizeOf(dtype)), std::byte{0xEE}) {}

HostTensor HostTensor::Zeros(Shape shape) {
  HostTensor tensor(shape);
  std::fill(tensor.bytes_.begin(), tensor.bytes_.end(), std::byte{0});
  return tensor;
}

HostTensor HostTensor::Random(Shape shape, uint64_t seed, float scale) {
  HostTensor tensor(shape);
  kernels::Stream stream({}, 1);
  const std::array<int64_t, Shape::kMaxRank> offset{};
  kernels::FillNormal(stream, tensor, shape,
                      std::span(offset).first(static_cast<size_t>(shape.rank())), seed, 0, 0,
                      scale);
  return tensor;
}

HostTensor HostTensor::Of(std::vector<int32_t> values) {
  HostTensor tensor({static_cast<int64_t>(values.size())}, DType::kI32);
  std::copy(values.begin(), values.end(), tensor.i32().begin());
  return tensor;
}

HostTensor HostTensor::Of(std::span<const float> values, Shape shape) {
  HostTensor tensor(shape);
  MEGA_CHECK_EQ(static_cast<int64_t>(values.size()), shape.elements());
  std::copy(values.begin(), values.end(), tensor.f32().begin());
  return tensor;
}

}  // namespace mega::testing
