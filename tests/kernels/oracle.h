// Plain forms in double that the kernels are compared with.
#pragma once

#include <cmath>
#include <vector>

#include "tests/support/tensors.h"

namespace mega::kernels {

// op(a) · op(b) for row-major [M, K] (or [K, M]) and [K, N] (or [N, K]).
inline std::vector<double> PlainMatmul(const testing::HostTensor& a, bool ta,
                                       const testing::HostTensor& b, bool tb, int64_t M, int64_t N,
                                       int64_t K) {
  std::vector<double> c(static_cast<size_t>(M * N));
  for (int64_t i = 0; i < M; ++i)
    for (int64_t j = 0; j < N; ++j)
      for (int64_t k = 0; k < K; ++k)
        c[i * N + j] += double{a.f32()[ta ? k * M + i : i * K + k]} *
                        double{b.f32()[tb ? j * K + k : k * N + j]};
  return c;
}

inline double PlainSigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace mega::kernels
