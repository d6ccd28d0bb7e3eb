// What this device can do at best, measured: the denominator of MFU. A dense product of a size that
// stays in cache, best of the repetitions that fit into 30 ms.
#pragma once

#include "kernels/device/stream.h"

namespace mega::profiler {

// FLOP/s of f32 matrix products with the stream's threads. Takes at most about 30 ms and 3 MiB.
double MeasurePeakFlops(kernels::Stream& stream);

}  // namespace mega::profiler
