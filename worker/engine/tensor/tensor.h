// Tensor: contiguous device memory with a dtype and a shape, from the rank's pool. Movable only;
// gives its memory back to the pool when it goes.
#pragma once

#include <string_view>

#include "kernels/device/stream.h"
#include "kernels/tensor_view.h"

namespace mega {

using kernels::Device;
using kernels::DType;
using kernels::Shape;
using kernels::Stream;
using kernels::TensorView;

// What a byte is for. The planner's MemoryBudget has the same words.
enum class Purpose : uint8_t { kWeights, kGrads, kOptimizer, kActivations, kWorkspace, kComm };
std::string_view NameOf(Purpose purpose);

class Pool;

class Tensor {
 public:
  Tensor() = default;
  Tensor(Tensor&& other) noexcept;
  Tensor& operator=(Tensor&& other) noexcept;
  ~Tensor();

  const TensorView& view() const { return view_; }
  operator TensorView() const { return view_; }  // NOLINT: ops take views
  const Shape& shape() const { return view_.shape(); }
  int64_t dim(int i) const { return view_.dim(i); }
  int64_t elements() const { return view_.elements(); }
  bool defined() const { return pool_ != nullptr; }
  TensorView View(Shape shape) const { return view_.View(shape); }

 private:
  friend class Pool;
  Tensor(Pool* pool, TensorView view, int64_t block_bytes, Purpose purpose)
      : pool_(pool), view_(view), block_bytes_(block_bytes), purpose_(purpose) {}
  Pool* pool_ = nullptr;  // outlives every tensor it gave out
  TensorView view_;
  int64_t block_bytes_ = 0;
  Purpose purpose_ = Purpose::kWorkspace;
};

}  // namespace mega
