// A written backward against finite differences of its forward.
#pragma once

#include <functional>

#include "tests/support/tensors.h"

namespace mega::testing {

// Largest relative disagreement of gradient · u with (loss(x + eps u) − loss(x − eps u)) / (2 eps)
// over `directions` random unit directions u. loss sees x changed in place and returns a double;
// x is restored. Float32 forwards with eps 1e-2 and inputs of order 1 agree to about 1e-3.
double GradientError(HostTensor& x, const HostTensor& gradient, const std::function<double()>& loss,
                     double eps = 1e-2, int directions = 4);

// sum of a · b in double: the loss whose upstream gradient is b.
double Dot(const HostTensor& a, const HostTensor& b);

}  // namespace mega::testing
