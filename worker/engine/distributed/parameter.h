// A parameter on this rank: the planner's declaration and the memory that holds its shard.
#pragma once

#include <string>
#include <vector>

#include "coordinator/planner/model/sharding.h"
#include "worker/engine/tensor/tensor.h"

namespace mega::distributed {

struct Parameter {
  planner::ParameterInfo info;
  TensorView value;             // this rank's shard (local shape)
  TensorView main_grad;         // f32, same shape, a window of the gradient buffer
  std::vector<int64_t> offset;  // of the shard in the global tensor, per dimension
};

}  // namespace mega::distributed
