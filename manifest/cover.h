// Do the slices of a tensor hold each of its elements exactly once?
#pragma once

#include <vector>

#include "base/status.h"
#include "mega/v1/checkpoint.pb.h"

namespace mega::manifest {

// INVALID_ARGUMENT says what is wrong. O(n log n) for n slices, however they lie; the numbers in
// them are not trusted.
absl::Status CheckCover(const v1::TensorInfo& tensor,
                        const std::vector<const v1::TensorSlice*>& slices);

}  // namespace mega::manifest
