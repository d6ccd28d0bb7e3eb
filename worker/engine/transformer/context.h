// What every block of a stage works with, and the mode of the present step.
#pragma once

#include "worker/engine/tensor/pool.h"

namespace mega::transformer {

struct Context {
  Pool& pool;
  Stream& stream;
  bool forward_only = false;  // evaluation: nothing is kept for a backward

  Tensor Activation(Shape shape) const {
    return pool.Allocate(DType::kF32, shape, Purpose::kActivations);
  }
  Tensor Workspace(Shape shape) const {
    return pool.Allocate(DType::kF32, shape, Purpose::kWorkspace);
  }
};

}  // namespace mega::transformer
