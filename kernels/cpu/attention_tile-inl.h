// Pieces that attention's forward and backward share: scores of a strip of queries, and the edges
// of the mask. Compiled once per target (no include guard across targets).
#if defined(MEGA_KERNELS_CPU_ATTENTION_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MEGA_KERNELS_CPU_ATTENTION_TILE_INL_H_
#undef MEGA_KERNELS_CPU_ATTENTION_TILE_INL_H_
#else
#define MEGA_KERNELS_CPU_ATTENTION_TILE_INL_H_
#endif

#include <algorithm>
#include <limits>

#include "kernels/cpu/attention_call.h"
#include "kernels/cpu/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mega::kernels::HWY_NAMESPACE {

constexpr int64_t kKeys = 256;  // keys of a block: a multiple of kPanel
constexpr int64_t kSlack = 32;  // floats past a row's last column that may be overwritten
// Row length of a tile of scores. Rows a power of two apart would share few cache sets.
constexpr int64_t kTileStep = kKeys + kSlack;

// Columns of a tile, counted from the first key of its block.
struct Columns {
  int64_t begin = 0, end = 0;
  bool empty() const { return begin >= end; }
  // Widened to whole vectors of any target; inside the block, whose keys are padded.
  Columns Padded() const { return {begin / kPad * kPad, PadUp(end)}; }
};

inline Columns ColumnsOf(KeyRange keys, int64_t first_key) {
  const Columns c{std::max<int64_t>(0, keys.begin - first_key),
                  std::min<int64_t>(kKeys, keys.end - first_key)};
  return c.empty() ? Columns{} : c;
}

// What any of `rows` queries sees.
inline Columns UnionOf(const KeyRange* ranges, int64_t rows, int64_t first_key) {
  Columns all;
  for (int64_t i = 0; i < rows; ++i) {
    const Columns c = ColumnsOf(ranges[i], first_key);
    if (c.empty()) continue;
    all = all.empty() ? c : Columns{std::min(all.begin, c.begin), std::max(all.end, c.end)};
  }
  return all;
}

// tile[i, j] = A(i) · (row j of what `panels` holds) for the padded columns: scores Q Kᵀ, or dO Vᵀ.
// A is k-major: A(i, k) = a[i + k · a_step]. panels starts at the block's first key.
HWY_INLINE void TransposedProduct(int64_t rows, Columns padded, int64_t width, const float* a,
                                  int64_t a_step, const float* panels, float* tile) {
  for (int64_t j = padded.begin; j < padded.end;) {
    const int64_t in_panel = j % kPanel;
    const int64_t columns = std::min(kPanel - in_panel, padded.end - j);
    Multiply<1, false>(rows, columns, width, a, a_step, panels + (j - in_panel) * width + in_panel,
                       kPanel, tile + j, kTileStep);
    j += columns;
  }
}

// Scores of `columns` (padded) that the row does not see become -inf, so that their exponentials
// are exactly 0. A causal edge lies within kSlack of the strip's: two stores without a branch.
HWY_INLINE void MaskRow(Columns columns, Columns row, float* scores) {
  const F32 d;
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  for (int64_t j = 0; j < kSlack; j += Lanes())
    hn::StoreU(hn::Set(d, kNever), d, scores + row.end + j);
  if (row.end + kSlack < columns.end) [[unlikely]]
    std::fill(scores + row.end + kSlack, scores + columns.end, kNever);
  if (columns.begin < row.begin) [[unlikely]]
    std::fill(scores + columns.begin, scores + row.begin, kNever);
}

// Zeros on both sides of a strip's columns, as far as a strip of keys that overlaps them reaches.
HWY_INLINE void ClearAround(Columns columns, float* row) {
  static_assert(kTileRows <= kPad);
  std::fill_n(row + columns.end, kPad, 0.0f);
  if (columns.begin > 0) std::fill_n(row + columns.begin - kPad, kPad, 0.0f);
}

// Asks for rows that are used soon: a head's rows lie N · H apart, which no prefetcher follows.
HWY_INLINE void Prefetch(const float* from, int64_t from_step, int64_t rows, int64_t width) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < width; k += 16) __builtin_prefetch(from + i * from_step + k);
}
HWY_INLINE void PrefetchForWrite(const float* to, int64_t step, int64_t rows, int64_t width) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < width; k += 16) __builtin_prefetch(to + i * step + k, 1);
}

}  // namespace mega::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
