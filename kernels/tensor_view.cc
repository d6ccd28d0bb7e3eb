#include "kernels/tensor_view.h"

namespace mega::kernels {

std::string Shape::ToString() const {
  std::string text = "[";
  for (int i = 0; i < rank_; ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(dims_[i]);
  }
  return text + "]";
}

TensorView TensorView::Rows(int64_t begin, int64_t count) const {
  MEGA_CHECK_GE(rank(), 1);
  MEGA_CHECK_GE(begin, 0);
  MEGA_CHECK_GE(count, 0);
  MEGA_CHECK_LE(begin, dim(0) - count);
  std::array<int64_t, Shape::kMaxRank> dims{};
  int64_t row_elements = 1;
  for (int i = 1; i < rank(); ++i) row_elements *= dims[i] = dim(i);
  dims[0] = count;
  return TensorView(data_ + begin * row_elements * SizeOf(dtype_), dtype_,
                    Shape(std::span<const int64_t>(dims.data(), rank())), device_);
}

}  // namespace mega::kernels
