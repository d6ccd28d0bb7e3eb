// A keyed permutation of 0 … n−1 that is computed at any place without a table: a Feistel network
// over the next power of four, walked until it lands inside (Black and Rogaway 2002, "cycle
// walking"). O(1) memory, about two rounds of the network on average.
#pragma once

#include <array>
#include <cstdint>

namespace mega::datasets {

class Permutation {
 public:
  // Equal (n, key) give the same permutation for ever: the order of a run's samples hangs on it.
  Permutation(int64_t n, uint64_t key);
  // 0 ≤ i < n.
  int64_t At(int64_t i) const;

 private:
  static constexpr int kRounds = 8;
  uint64_t Network(uint64_t value) const;
  int64_t n_;
  int half_bits_;
  std::array<uint64_t, kRounds> keys_;
};

// Mixes 64 bits well (the finaliser of splitmix64, Steele et al. 2014).
uint64_t Mix(uint64_t bits);

}  // namespace mega::datasets
