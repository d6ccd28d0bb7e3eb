// target[i] = sources[0][i] ∘ sources[1][i] ∘ …, in that order: rank order, so that the bits do not
// depend on who adds or when. `target` may be one of the sources, else they do not overlap.
// Max and min keep a NaN. f32, f64, i32, i64.
#pragma once

#include <cstddef>
#include <span>

#include "worker/engine/distributed/communicator.h"

namespace mega::distributed {

void ReduceInOrder(DType dtype, ReduceOp op, std::span<const std::byte* const> sources,
                   std::byte* target, int64_t elements);

}  // namespace mega::distributed
