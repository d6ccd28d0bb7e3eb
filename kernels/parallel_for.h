// The only way a kernel uses more than one core, and the only file pair that knows OpenMP.
// body(begin, end) gets contiguous, disjoint ranges that cover [0, n); the split depends only on n,
// grain and the stream's thread count, so results repeat bit for bit. Serial under TSan and when
// n <= grain. Not nested.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "kernels/device/stream.h"

namespace mega::kernels {

void ParallelFor(Stream& stream, int64_t n, int64_t grain,
                 absl::FunctionRef<void(int64_t begin, int64_t end)> body);

}  // namespace mega::kernels
