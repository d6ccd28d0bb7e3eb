// Hashes that name things, the same for ever: weights, file names and tags hang on them. Not for
// tables and not against attackers.
#pragma once

#include <cstdint>
#include <string_view>

namespace mega {

// FNV-1a, 64 bits. Goes on from `hash`: that of two texts in turn is that of both joined.
constexpr uint64_t Fnv1a(std::string_view text, uint64_t hash = 0xcbf29ce484222325) {
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

// The finaliser of splitmix64 (Steele et al. 2014): near inputs give far outputs.
constexpr uint64_t Finalise(uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

}  // namespace mega
