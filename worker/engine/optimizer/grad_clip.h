// The global gradient norm and the factor that bounds it.
//   norm = sqrt(Σ over parameters, in their order, of Σ g²), in double;  factor = min(1, clip /
//   (norm + 1e-6))
// Fixed order: the same bits for any number of threads and any cut of the model into stages.
#pragma once

#include <span>
#include <string>

#include "kernels/device/stream.h"
#include "worker/engine/distributed/parameter.h"

namespace mega::optimizer {

struct GradNorm {
  double norm = 0;
  std::string first_bad;  // the first parameter whose gradient is not finite; empty: none
};
// Of grad_scale · main_grad. The gradients are those of this rank's data group, already reduced.
GradNorm MeasureGradNorm(Stream& stream, std::span<distributed::Parameter* const> parameters,
                         double grad_scale);

// clip 0: no clipping.
double ClipFactor(double norm, double clip);

}  // namespace mega::optimizer
