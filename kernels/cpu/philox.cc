// Counter layout: words 0-1 the index, words 2-3 the stream's key; the Philox key is the seed.
#include "kernels/philox.h"

#include <cmath>
#include <numbers>

#include "kernels/cpu/edge.h"
#include "kernels/parallel_for.h"

namespace mega::kernels {
namespace {

using Block = std::array<uint32_t, 4>;

Block BlockOf(uint64_t seed, uint64_t key, uint64_t index) {
  return Philox({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
                 static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)},
                {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
}

// Two standard normals from one block: Box & Muller 1958. The logarithm's argument is in (0, 1].
std::array<double, 2> NormalPair(const Block& block) {
  const double u = (block[0] + 1.0) * 0x1p-32;
  const double angle = 2 * std::numbers::pi * (block[1] * 0x1p-32 + block[2] * 0x1p-64);
  const double radius = std::sqrt(-2 * std::log(u - block[3] * 0x1p-64));
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

}  // namespace

std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> c, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * c[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ key[0], static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ c[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return c;
}

uint64_t PhiloxBits(uint64_t seed, uint64_t key, uint64_t index) {
  const Block block = BlockOf(seed, key, index);
  return block[0] | uint64_t{block[1]} << 32;
}

double PhiloxUniform(uint64_t seed, uint64_t key, uint64_t index) {
  return static_cast<double>(PhiloxBits(seed, key, index) >> 11) * 0x1p-53;
}

void FillNormal(Stream& stream, TensorView slice, const Shape& global_shape,
                std::span<const int64_t> offset, uint64_t seed, uint64_t key, float mean,
                float std) {
  const int rank = global_shape.rank();
  MEGA_CHECK_EQ(slice.rank(), rank);
  MEGA_CHECK_EQ(static_cast<int>(offset.size()), rank);
  for (int i = 0; i < rank; ++i) {
    MEGA_CHECK_GE(offset[i], 0);
    MEGA_CHECK_LE(offset[i], global_shape[i] - slice.dim(i));
  }
  float* data = Data(slice);
  if (slice.empty()) return;
  const int64_t columns = rank == 0 ? 1 : slice.dim(rank - 1);
  const int64_t rows = slice.elements() / columns;
  // Elements 2j and 2j + 1 of the global tensor are the pair of block j.
  ParallelFor(stream, rows, 1024 / columns + 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      // The global linear index of the row's first element.
      int64_t index = rank == 0 ? 0 : offset[rank - 1], stride = 1, left = row;
      for (int i = rank - 2; i >= 0; --i) {
        stride *= global_shape[i + 1];
        index += (left % slice.dim(i) + offset[i]) * stride;
        left /= slice.dim(i);
      }
      for (int64_t c = 0; c < columns;) {
        const auto at = static_cast<uint64_t>(index + c);
        const auto pair = NormalPair(BlockOf(seed, key, at / 2));
        data[row * columns + c++] = static_cast<float>(mean + std * pair[at % 2]);
        if (at % 2 == 0 && c < columns)
          data[row * columns + c++] = static_cast<float>(mean + std * pair[1]);
      }
    }
  });
}

}  // namespace mega::kernels
