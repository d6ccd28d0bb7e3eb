// The checks an op makes once, at its edge.
#pragma once

#include <initializer_list>
#include <source_location>

#include "base/check.h"
#include "kernels/tensor_view.h"

namespace mega::kernels {

// The elements of x, which is on the CPU.
template <typename T = float>
T* Data(const TensorView& x) {
  MEGA_CHECK(x.device().kind == DeviceKind::kCpu);
  return x.ptr<T>();
}

inline void CheckShape(const TensorView& x, const Shape& expected,
                       std::source_location where = std::source_location::current()) {
  if (x.shape() == expected) [[likely]]
    return;
  check::Fail(where.file_name(), static_cast<int>(where.line()),
              fmt::format("{}: a view is {} where {} is needed", where.function_name(),
                          x.shape().ToString(), expected.ToString()));
}

}  // namespace mega::kernels
