#include "tests/support/gradient_check.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace mega::testing {

double Dot(const HostTensor& a, const HostTensor& b) {
  MEGA_CHECK_EQ(a.elements(), b.elements());
  double sum = 0;
  for (int64_t i = 0; i < a.elements(); ++i) sum += double{a.f32()[i]} * double{b.f32()[i]};
  return sum;
}

double GradientError(HostTensor& x, const HostTensor& gradient, const std::function<double()>& loss,
                     double eps, int directions) {
  MEGA_CHECK_EQ(x.elements(), gradient.elements());
  const std::vector<float> at(x.f32().begin(), x.f32().end());
  const double size = std::sqrt(Dot(gradient, gradient));
  double worst = 0;
  for (int direction = 0; direction < directions; ++direction) {
    HostTensor u = HostTensor::Random(x.shape(), 1000 + static_cast<uint64_t>(direction));
    // Half along the gradient: a random direction alone is nearly orthogonal to it in many
    // dimensions, and would compare noise.
    const double norm = std::sqrt(Dot(u, u));
    for (int64_t i = 0; i < x.elements(); ++i)
      u.f32()[i] =
          static_cast<float>(u.f32()[i] / norm + (size > 0 ? gradient.f32()[i] / size : 0));
    const auto loss_at = [&](double step) {
      for (size_t i = 0; i < at.size(); ++i)
        x.f32()[i] = static_cast<float>(at[i] + step * u.f32()[i]);
      return loss();
    };
    const double difference = (loss_at(eps) - loss_at(-eps)) / (2 * eps);
    const double expected = Dot(gradient, u);
    worst = std::max(worst, std::abs(difference - expected) / std::max(size, 1e-6));
  }
  std::copy(at.begin(), at.end(), x.f32().begin());
  return worst;
}

}  // namespace mega::testing
