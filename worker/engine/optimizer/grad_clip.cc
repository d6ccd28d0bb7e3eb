#include "worker/engine/optimizer/grad_clip.h"

#include <algorithm>
#include <cmath>

#include "kernels/elementwise.h"

namespace mega::optimizer {

GradNorm MeasureGradNorm(Stream& stream, std::span<distributed::Parameter* const> parameters,
                         double grad_scale) {
  GradNorm result;
  double sum = 0;
  for (const distributed::Parameter* parameter : parameters) {
    const double part = kernels::SumOfSquares(stream, parameter->main_grad);
    if (!std::isfinite(part) && result.first_bad.empty()) result.first_bad = parameter->info.name;
    sum += part;
  }
  result.norm = std::sqrt(sum) * std::abs(grad_scale);
  return result;
}

double ClipFactor(double norm, double clip) {
  return clip > 0 ? std::min(1.0, clip / (norm + 1e-6)) : 1.0;
}

}  // namespace mega::optimizer
