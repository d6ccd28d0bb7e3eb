// Shapes of attention that the tests and the benchmark share.
#pragma once

#include <cstdint>
#include <vector>

namespace mega::kernels {

struct AttentionSizes {
  int64_t B, S, K, N, G, H, V;
};

// What a small language model trains with.
inline std::vector<AttentionSizes> TrainingAttention() {
  return {{16, 128, 128, 4, 4, 32, 32},
          {16, 128, 128, 6, 6, 64, 64},
          {8, 256, 256, 8, 8, 32, 32},
          {8, 256, 256, 6, 6, 64, 64},
          {32, 128, 128, 8, 2, 32, 32}};
}

// Every edge of the blocking: lengths around a strip, a panel and a block of keys, decode, more
// queries than keys, odd and unequal head sizes.
inline std::vector<AttentionSizes> OddAttention() {
  return {{1, 1, 1, 1, 1, 1, 1},      {2, 17, 17, 4, 2, 16, 16},   {1, 33, 33, 3, 3, 5, 7},
          {1, 49, 49, 2, 1, 24, 40},  {1, 1, 19, 4, 2, 16, 16},    {1, 3, 20, 4, 2, 12, 9},
          {1, 20, 7, 2, 1, 8, 8},     {1, 257, 257, 2, 1, 32, 32}, {1, 600, 600, 1, 1, 24, 17},
          {1, 70, 531, 2, 2, 20, 20}, {0, 5, 5, 2, 1, 8, 8},       {2, 96, 96, 2, 2, 64, 64}};
}

}  // namespace mega::kernels
