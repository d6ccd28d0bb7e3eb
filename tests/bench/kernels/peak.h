// What this machine can do at most, measured in the same run as the kernels.
#pragma once

namespace mega::kernels {

double PeakFlops();      // FLOP/s of one thread in a loop of independent FMAs
double PeakCopyBytes();  // bytes/s (read + written) of one thread's memcpy of 64 MiB

}  // namespace mega::kernels
