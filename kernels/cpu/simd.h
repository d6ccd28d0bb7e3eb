// Vector code: each file of it is compiled once per instruction set (Highway's foreach_target) and
// the best one the processor has is called. This header is the part that is not per target.
#pragma once

#include <string_view>

namespace mega::kernels {

// "AVX3" (AVX-512), "AVX2" or "SCALAR": what this process runs. Results differ in the last bits
// between them, so it is part of NumericLibraries.
std::string_view SimdTargetName();

}  // namespace mega::kernels
