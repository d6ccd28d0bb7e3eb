// Counter-based random numbers: Philox4x32-10.  Salmon et al. 2011 (SC'11).
// A value is a function of (seed, key, index) alone, so any layout draws the same.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "kernels/device/stream.h"
#include "kernels/tensor_view.h"

namespace mega::kernels {

// One block of four 32-bit words.
std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// 64 random bits for (seed, key, index).
uint64_t PhiloxBits(uint64_t seed, uint64_t key, uint64_t index);
// Uniform in [0, 1), 53 bits.
double PhiloxUniform(uint64_t seed, uint64_t key, uint64_t index);

// Element with global coordinates c gets mean + std · z(seed, key, linear index of c in
// global_shape). `slice` holds the part of the tensor that starts at `offset`. f32.
void FillNormal(Stream& stream, TensorView slice, const Shape& global_shape,
                std::span<const int64_t> offset, uint64_t seed, uint64_t key, float mean,
                float std);

}  // namespace mega::kernels
