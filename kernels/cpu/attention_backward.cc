// Backward, recomputing probabilities from lse. With P = e^(S - lse), D = rowsum(dO ∘ O):
//   dV = Pᵀ dO      dP = dO Vᵀ      dS = P ∘ (dP - D)      dQ = scale dS K      dK = dSᵀ (scale Q)
// A unit owns one key/value head, so dK and dV need no atomics and no reduction: they add up over
// its query heads in order. Queries go in blocks of kQueries; a block's P and dS over kKeys keys
// stay in L2.
#include <cmath>

#include "kernels/attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention_backward.cc"  // NOLINT
#include "hwy/aligned_allocator.h"
#include "hwy/foreach_target.h"
#include "kernels/cpu/attention_call.h"
#include "kernels/cpu/attention_tile-inl.h"
#include "kernels/cpu/edge.h"
#include "kernels/parallel_for.h"

HWY_BEFORE_NAMESPACE();
namespace mega::kernels::HWY_NAMESPACE {

constexpr int64_t kQueries = 48;  // a multiple of every kTileRows

// Everything a unit needs in cache. Suffixes: T transposed to k-major, P transposed in panels.
struct BackwardScratch {
  explicit BackwardScratch(const AttentionShape& s)
      : padded_h(PadUp(s.H)),
        padded_v(PadUp(s.V)),
        panel_keys((s.K + kPanel - 1) / kPanel * kPanel) {
    const int64_t sizes[] = {s.K * padded_h,      panel_keys * s.H,     panel_keys * s.V,
                             s.K * padded_h,      s.K * padded_v,       kQueries * padded_h,
                             kQueries * padded_v, kQueries * s.H,       kQueries * s.V,
                             kQueries * padded_h, kQueries * kTileStep, kQueries * kTileStep};
    float** pieces[] = {&k, &kP, &vP, &dk, &dv, &q, &dout, &qT, &doutT, &dq, &p, &ds};
    int64_t total = 0;
    for (const int64_t size : sizes) total += PadUp(size);
    memory = hwy::AllocateAligned<float>(static_cast<size_t>(total + kPad));
    float* at = memory.get();
    for (size_t i = 0; i < std::size(sizes); ++i) {
      *pieces[i] = at;
      at += PadUp(sizes[i]);
    }
  }
  int64_t padded_h, padded_v, panel_keys;
  hwy::AlignedFreeUniquePtr<float[]> memory;
  float *k, *kP, *vP, *dk, *dv;                // of the unit's keys
  float *q, *dout, *qT, *doutT, *dq, *p, *ds;  // of a block of queries
};

// Row of scores and row of dP → P and dS, in place.
HWY_INLINE void ProbabilitiesAndGradient(Columns columns, float lse, float expected, float* p,
                                         float* ds) {
  const F32 d;
  const auto log_sum = hn::Set(d, lse), mean = hn::Set(d, expected);
  for (int64_t j = columns.begin; j < columns.end; j += Lanes()) {
    const auto e = ExpBelow88(d, hn::Sub(hn::LoadU(d, p + j), log_sum));
    hn::StoreU(e, d, p + j);
    hn::StoreU(hn::Mul(e, hn::Sub(hn::LoadU(d, ds + j), mean)), d, ds + j);
  }
}

// The keys' shares, dV += Pᵀ dO and dK += dSᵀ Q, of a block of queries: for each strip of keys from
// the first query that sees one of them.
HWY_INLINE void AddKeyGradients(const KeyRange* ranges, int64_t rows, int64_t j0, Columns all,
                                const BackwardScratch& s) {
  int64_t first = 0, last = rows;
  for (int64_t j = all.begin; j < all.end; j += kTileRows) {
    const int64_t count = std::min<int64_t>(kTileRows, all.end - j);
    // Begins and ends of ranges never decrease from a query to the next.
    while (first < rows && ranges[first].end <= j0 + j) ++first;
    for (last = first; last < rows && ranges[last].begin < j0 + j + count;) ++last;
    const int64_t depth = last - first;
    Multiply<1, true>(count, s.padded_v, depth, s.p + first * kTileStep + j, kTileStep,
                      s.dout + first * s.padded_v, s.padded_v, s.dv + (j0 + j) * s.padded_v,
                      s.padded_v);
    Multiply<1, true>(count, s.padded_h, depth, s.ds + first * kTileStep + j, kTileStep,
                      s.q + first * s.padded_h, s.padded_h, s.dk + (j0 + j) * s.padded_h,
                      s.padded_h);
  }
}

// Rows [at, at + rows) of the block against one block of keys: P, dS, and dS K added to dQ.
HWY_INLINE void BackwardStrip(const AttentionShape& shape, const KeyRange* ranges, int64_t rows,
                              int64_t first_key, const float* lse, const float* expected,
                              int64_t at, const BackwardScratch& s) {
  float *p = s.p + at * kTileStep, *ds = s.ds + at * kTileStep;
  const Columns all = UnionOf(ranges, rows, first_key);
  if (all.empty()) return;
  const Columns columns = all.Padded();
  TransposedProduct(rows, columns, shape.H, s.qT + at, kQueries, s.kP + first_key * shape.H, p);
  TransposedProduct(rows, columns, shape.V, s.doutT + at, kQueries, s.vP + first_key * shape.V, ds);
  for (int64_t i = 0; i < rows; ++i) {
    float *p_row = p + i * kTileStep, *ds_row = ds + i * kTileStep;
    const Columns row = ColumnsOf(ranges[i], first_key);
    if (row.empty()) {
      std::fill(p_row + columns.begin, p_row + columns.end, 0.0f);
      std::fill(ds_row + columns.begin, ds_row + columns.end, 0.0f);
    } else {
      MaskRow(columns, row, p_row);
      ProbabilitiesAndGradient(columns, lse[i], expected[i], p_row, ds_row);
    }
    ClearAround(columns, p_row);
    ClearAround(columns, ds_row);
  }
  Multiply<kTileStep, true>(rows, s.padded_h, all.end - all.begin, ds + all.begin, 1,
                            s.k + (first_key + all.begin) * s.padded_h, s.padded_h,
                            s.dq + at * s.padded_h, s.padded_h);
}

// One block of queries of head n against all keys they see.
HWY_INLINE void BackwardQueries(const AttentionCall& call, int64_t b, int64_t n, int64_t i0,
                                const BackwardScratch& s) {
  const auto& [B, S, K, N, G, H, V] = call.shape;
  const int64_t rows = std::min(kQueries, S - i0);
  const KeyRange* ranges = call.ranges + i0;
  const float* q = AttentionCall::Row(call.q, S, N, H, b, i0, n);
  const float* dout = AttentionCall::Row(call.dout, S, N, V, b, i0, n);
  const float* o = AttentionCall::Row<const float>(call.o, S, N, V, b, i0, n);
  const float* lse = call.lse + (b * N + n) * S + i0;
  PackRows(q, N * H, rows, H, call.scale, s.q, s.padded_h);
  PackRows(dout, N * V, rows, V, 1.0f, s.dout, s.padded_v);
  Transpose(s.q, s.padded_h, rows, H, 1.0f, s.qT, kQueries);
  Transpose(s.dout, s.padded_v, rows, V, 1.0f, s.doutT, kQueries);
  std::fill_n(s.dq, rows * s.padded_h, 0.0f);
  float expected[kQueries];  // D
  for (int64_t i = 0; i < rows; ++i)
    expected[i] = RowSum(V, [&](auto d, int64_t c) HWY_ATTR {
      return hn::Mul(hn::LoadU(d, s.dout + i * s.padded_v + c), hn::LoadU(d, o + i * N * V + c));
    });

  // Ends of ranges never decrease from a query to the next.
  for (int64_t j0 = 0; j0 < ranges[rows - 1].end; j0 += kKeys) {
    for (int64_t i = 0; i < rows; i += kTileRows)
      BackwardStrip(call.shape, ranges + i, std::min<int64_t>(kTileRows, rows - i), j0, lse + i,
                    expected + i, i, s);
    AddKeyGradients(ranges, rows, j0, UnionOf(ranges, rows, j0), s);
  }
  float* dq = AttentionCall::Row(call.dq, S, N, H, b, i0, n);
  for (int64_t i = 0; i < rows; ++i)
    ForEachVector(H, [&](auto d, int64_t h) HWY_ATTR {
      hn::StoreU(hn::Mul(hn::LoadU(d, s.dq + i * s.padded_h + h), hn::Set(d, call.scale)), d,
                 dq + i * N * H + h);
    });
}

void AttentionBackwardUnits(const AttentionCall& call, int64_t begin, int64_t end) {
  const auto& [B, S, K, N, G, H, V] = call.shape;
  const BackwardScratch s(call.shape);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t b = unit / G, g = unit % G;
    const float* k = AttentionCall::Row(call.k, K, G, H, b, 0, g);
    const float* v = AttentionCall::Row(call.v, K, G, V, b, 0, g);
    PackRows(k, G * H, K, H, 1.0f, s.k, s.padded_h);
    PackPanels(k, G * H, K, H, s.kP);
    PackPanels(v, G * V, K, V, s.vP);
    std::fill_n(s.dk, K * s.padded_h, 0.0f);
    std::fill_n(s.dv, K * s.padded_v, 0.0f);
    for (int64_t n = g * (N / G); n < (g + 1) * (N / G); ++n)
      for (int64_t i0 = 0; i0 < S; i0 += kQueries) BackwardQueries(call, b, n, i0, s);
    float* dk = AttentionCall::Row(call.dk, K, G, H, b, 0, g);
    float* dv = AttentionCall::Row(call.dv, K, G, V, b, 0, g);
    for (int64_t j = 0; j < K; ++j) {
      std::copy_n(s.dk + j * s.padded_h, H, dk + j * G * H);
      std::copy_n(s.dv + j * s.padded_v, V, dv + j * G * V);
    }
  }
}

}  // namespace mega::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mega::kernels {
HWY_EXPORT(AttentionBackwardUnits);

void AttentionBackward(Stream& stream, TensorView q_BSNH, TensorView k_BKGH, TensorView v_BKGV,
                       TensorView o_BSNV, TensorView lse_BNS, TensorView do_BSNV, float scale,
                       const AttentionMask& mask, TensorView dq_BSNH, TensorView dk_BKGH,
                       TensorView dv_BKGV) {
  const AttentionShape shape = CheckAttention(q_BSNH, k_BKGH, v_BKGV, o_BSNV, lse_BNS);
  CheckShape(do_BSNV, o_BSNV.shape());
  CheckShape(dq_BSNH, q_BSNH.shape());
  CheckShape(dk_BKGH, k_BKGH.shape());
  CheckShape(dv_BKGV, v_BKGV.shape());
  const std::vector<KeyRange> ranges = VisibleKeys(mask, shape.S, shape.K);
  const AttentionCall call{.shape = shape,
                           .scale = scale,
                           .ranges = ranges.data(),
                           .q = Data(q_BSNH),
                           .k = Data(k_BKGH),
                           .v = Data(v_BKGV),
                           .o = Data(o_BSNV),
                           .lse = Data(lse_BNS),
                           .dout = Data(do_BSNV),
                           .dq = Data(dq_BSNH),
                           .dk = Data(dk_BKGH),
                           .dv = Data(dv_BKGV)};
  ParallelFor(stream, shape.B * shape.G, 1, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(AttentionBackwardUnits)(call, begin, end);
  });
}

}  // namespace mega::kernels
#endif
