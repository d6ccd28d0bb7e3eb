#include "worker/engine/tensor/tensor.h"

#include <utility>

#include "worker/engine/tensor/pool.h"

namespace mega {

std::string_view NameOf(Purpose purpose) {
  switch (purpose) {
    case Purpose::kWeights:
      return "weights";
    case Purpose::kGrads:
      return "grads";
    case Purpose::kOptimizer:
      return "optimizer";
    case Purpose::kActivations:
      return "activations";
    case Purpose::kWorkspace:
      return "workspace";
    case Purpose::kComm:
      return "comm";
  }
  return "unknown";
}

Tensor::Tensor(Tensor&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      view_(std::exchange(other.view_, TensorView())),
      block_bytes_(std::exchange(other.block_bytes_, 0)),
      purpose_(other.purpose_) {}

Tensor& Tensor::operator=(Tensor&& other) noexcept {
  if (this == &other) return *this;
  if (pool_ != nullptr) pool_->Free(view_, block_bytes_, purpose_);
  pool_ = std::exchange(other.pool_, nullptr);
  view_ = std::exchange(other.view_, TensorView());
  block_bytes_ = std::exchange(other.block_bytes_, 0);
  purpose_ = other.purpose_;
  return *this;
}

Tensor::~Tensor() {
  if (pool_ != nullptr) pool_->Free(view_, block_bytes_, purpose_);
}

}  // namespace mega
