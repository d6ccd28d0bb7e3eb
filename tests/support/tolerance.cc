#include "tests/support/tolerance.h"

#include <cmath>
#include <limits>

namespace mega::testing {
namespace {

template <typename T>
double Relative(std::span<const float> got, std::span<const T> want) {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  if (got.size() != want.size()) return kFar;
  double error = 0, norm = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double a = got[i], b = want[i];
    if (std::isinf(a) && a == b) continue;
    if (!std::isfinite(a) || !std::isfinite(b)) return kFar;
    error += (a - b) * (a - b);
    norm += b * b;
  }
  return norm == 0 ? std::sqrt(error) : std::sqrt(error / norm);
}

}  // namespace

double RelativeL2(std::span<const float> got, std::span<const float> want) {
  return Relative(got, want);
}

double RelativeL2(std::span<const float> got, std::span<const double> want) {
  return Relative(got, want);
}

}  // namespace mega::testing
