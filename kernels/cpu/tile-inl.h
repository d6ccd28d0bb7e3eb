// Small matrix products on operands that sit in cache: what attention is made of. One kernel serves
// all seven of its products: a block of A is broadcast element by element, vectors run along rows
// of B and C. Compiled once per target (no include guard across targets).
#if defined(MEGA_KERNELS_CPU_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MEGA_KERNELS_CPU_TILE_INL_H_
#undef MEGA_KERNELS_CPU_TILE_INL_H_
#else
#define MEGA_KERNELS_CPU_TILE_INL_H_
#endif

#include <algorithm>
#include <cstring>

#include "kernels/cpu/simd-inl.h"

// GCC keeps an array in registers only when every loop over it is unrolled. Sanitizers check each
// access: unrolled, they would take minutes to compile.
#undef MEGA_UNROLL
#if HWY_IS_ASAN || HWY_IS_TSAN || HWY_IS_MSAN
#define MEGA_UNROLL
#elif defined(__clang__)
#define MEGA_UNROLL _Pragma("unroll")
#else
#define MEGA_UNROLL _Pragma("GCC unroll 16")
#endif

HWY_BEFORE_NAMESPACE();
namespace mega::kernels::HWY_NAMESPACE {

// Widths of packed operands are padded to this many floats: one vector of the widest target.
constexpr int64_t kPad = 16;
constexpr int64_t kPanel = 32;  // columns of a packed, transposed operand
// Rows of C per register block: rows × 2 accumulators, 2 vectors of B, and A broadcast from memory.
#if HWY_TARGET == HWY_AVX3
constexpr int kTileRows = 12;
#elif HWY_TARGET == HWY_AVX2
constexpr int kTileRows = 6;
#else
constexpr int kTileRows = 4;
#endif

inline int64_t PadUp(int64_t n) { return (n + kPad - 1) / kPad * kPad; }

// C[kRows × kVectors vectors] = or += sum over k of A(i, k) · B[k, :], where
// A(i, k) = a[i · kRowStride + k · a_step].
template <int kRows, int kVectors, int64_t kRowStride, bool kAccumulate>
HWY_INLINE void Tile(int64_t depth, const float* HWY_RESTRICT a, int64_t a_step,
                     const float* HWY_RESTRICT b, int64_t ldb, float* HWY_RESTRICT c, int64_t ldc) {
  const F32 d;
  const int64_t lanes = Lanes();
  hn::Vec<F32> sum[kRows][kVectors];
  MEGA_UNROLL for (int i = 0; i < kRows; ++i) {
    MEGA_UNROLL for (int v = 0; v < kVectors; ++v) sum[i][v] = hn::Zero(d);
  }
  for (int64_t k = 0; k < depth; ++k) {
    hn::Vec<F32> row[kVectors];
    MEGA_UNROLL for (int v = 0; v < kVectors; ++v) row[v] = hn::LoadU(d, b + v * lanes);
    MEGA_UNROLL for (int i = 0; i < kRows; ++i) {
      const auto factor = hn::Set(d, a[i * kRowStride]);
      MEGA_UNROLL for (int v = 0; v < kVectors; ++v) {
        sum[i][v] = hn::MulAdd(factor, row[v], sum[i][v]);
      }
    }
    a += a_step;
    b += ldb;
  }
  MEGA_UNROLL for (int i = 0; i < kRows; ++i) {
    MEGA_UNROLL for (int v = 0; v < kVectors; ++v) {
      float* to = c + i * ldc + v * lanes;
      hn::StoreU(kAccumulate ? hn::Add(hn::LoadU(d, to), sum[i][v]) : sum[i][v], d, to);
    }
  }
}

// All columns (a multiple of kPad) of kRows rows.
template <int kRows, int64_t kRowStride, bool kAccumulate>
HWY_NOINLINE void TileRow(int64_t columns, int64_t depth, const float* a, int64_t a_step,
                          const float* b, int64_t ldb, float* c, int64_t ldc) {
  const int64_t lanes = Lanes();
  int64_t j = 0;
  for (; j + 2 * lanes <= columns; j += 2 * lanes)
    Tile<kRows, 2, kRowStride, kAccumulate>(depth, a, a_step, b + j, ldb, c + j, ldc);
  for (; j < columns; j += lanes)
    Tile<kRows, 1, kRowStride, kAccumulate>(depth, a, a_step, b + j, ldb, c + j, ldc);
}

// C[rows × columns] = or += A · B. A as in Tile; rows <= kTileRows.
template <int64_t kRowStride, bool kAccumulate>
HWY_INLINE void Multiply(int64_t rows, int64_t columns, int64_t depth, const float* a,
                         int64_t a_step, const float* b, int64_t ldb, float* c, int64_t ldc) {
  const auto run = [&](auto count) HWY_ATTR {
    TileRow<count(), kRowStride, kAccumulate>(columns, depth, a, a_step, b, ldb, c, ldc);
    a += count() * kRowStride;
    c += count() * ldc;
    rows -= count();
  };
  while (rows >= kTileRows) run(std::integral_constant<int, kTileRows>());
  if (kTileRows > 8 && rows >= 8) run(std::integral_constant<int, 8>());
  if (rows >= 4) run(std::integral_constant<int, 4>());
  if (rows >= 2) run(std::integral_constant<int, 2>());
  if (rows >= 1) run(std::integral_constant<int, 1>());
}

// to[k · to_step + i] = scale · from[i · from_step + k]: rows become columns.
HWY_INLINE void Transpose(const float* from, int64_t from_step, int64_t rows, int64_t width,
                          float scale, float* to, int64_t to_step) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<float, 4> d;
  const hn::RepartitionToWide<decltype(d)> wide;
  const auto factor = hn::Set(d, scale);
  for (; i + 4 <= rows; i += 4) {
    const float* r = from + i * from_step;
    int64_t k = 0;
    for (; k + 4 <= width; k += 4) {
      const auto r0 = hn::LoadU(d, r + k), r1 = hn::LoadU(d, r + from_step + k);
      const auto r2 = hn::LoadU(d, r + 2 * from_step + k), r3 = hn::LoadU(d, r + 3 * from_step + k);
      const auto low01 = hn::BitCast(wide, hn::InterleaveLower(d, r0, r1));
      const auto low23 = hn::BitCast(wide, hn::InterleaveLower(d, r2, r3));
      const auto high01 = hn::BitCast(wide, hn::InterleaveUpper(d, r0, r1));
      const auto high23 = hn::BitCast(wide, hn::InterleaveUpper(d, r2, r3));
      float* at = to + k * to_step + i;
      const auto put = [&](auto columns, int64_t offset) HWY_ATTR {
        hn::StoreU(hn::Mul(hn::BitCast(d, columns), factor), d, at + offset * to_step);
      };
      put(hn::InterleaveLower(wide, low01, low23), 0);
      put(hn::InterleaveUpper(wide, low01, low23), 1);
      put(hn::InterleaveLower(wide, high01, high23), 2);
      put(hn::InterleaveUpper(wide, high01, high23), 3);
    }
    for (; k < width; ++k)
      for (int64_t r4 = 0; r4 < 4; ++r4) to[k * to_step + i + r4] = scale * r[r4 * from_step + k];
  }
#endif
  for (; i < rows; ++i)
    for (int64_t k = 0; k < width; ++k) to[k * to_step + i] = scale * from[i * from_step + k];
}

// Rows of `width` with padding: to[i · to_step + k], zero for width <= k < to_step.
HWY_INLINE void PackRows(const float* from, int64_t from_step, int64_t rows, int64_t width,
                         float scale, float* to, int64_t to_step) {
  for (int64_t i = 0; i < rows; ++i) {
    float* row = to + i * to_step;
    ForEachVector(width, [&](auto d, int64_t k) HWY_ATTR {
      hn::StoreU(hn::Mul(hn::LoadU(d, from + i * from_step + k), hn::Set(d, scale)), d, row + k);
    });
    std::fill(row + width, row + to_step, 0.0f);
  }
}

// Transposed panels: panel p holds rows [p · kPanel, …) as [width][kPanel], zero past the last row.
HWY_INLINE void PackPanels(const float* from, int64_t from_step, int64_t rows, int64_t width,
                           float* to) {
  for (int64_t i = 0; i < rows; i += kPanel) {
    const int64_t count = std::min(kPanel, rows - i);
    if (count < kPanel) std::fill_n(to, width * kPanel, 0.0f);
    Transpose(from + i * from_step, from_step, count, width, 1.0f, to, kPanel);
    to += width * kPanel;
  }
}

}  // namespace mega::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
