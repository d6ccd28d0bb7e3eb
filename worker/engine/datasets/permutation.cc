#include "worker/engine/datasets/permutation.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/hash.h"

namespace mega::datasets {

uint64_t Mix(uint64_t bits) { return Finalise(bits + 0x9e3779b97f4a7c15); }

Permutation::Permutation(int64_t n, uint64_t key) : n_(n) {
  MEGA_CHECK(n >= 1);
  // Halves of at least 4 bits: a network over fewer has too few different permutations.
  const int bits = std::bit_width(static_cast<uint64_t>(n - 1));
  half_bits_ = std::max((bits + 1) / 2, 4);
  for (uint64_t& round_key : keys_) round_key = key = Mix(key);
}

uint64_t Permutation::Network(uint64_t value) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_, right = value & mask;
  for (uint64_t key : keys_) {
    const uint64_t next = left ^ (Mix(right ^ key) & mask);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

int64_t Permutation::At(int64_t i) const {
  MEGA_CHECK(i >= 0 && i < n_);
  auto value = static_cast<uint64_t>(i);
  do {
    value = Network(value);
  } while (value >= static_cast<uint64_t>(n_));
  return static_cast<int64_t>(value);
}

}  // namespace mega::datasets
