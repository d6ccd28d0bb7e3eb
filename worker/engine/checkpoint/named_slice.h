// A rectangular part of a global tensor, in host memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/engine/tensor/tensor.h"

namespace mega::checkpoint {

struct NamedSlice {
  std::string name;  // "layers.7.mlp.down.weight", "optimizer.exp_avg/layers.7…"
  std::vector<int64_t> global_shape;
  std::vector<int64_t> offset;  // of the slice, per dimension
  TensorView view;              // its values; view.shape() is the slice's
};

}  // namespace mega::checkpoint
