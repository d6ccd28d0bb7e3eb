// Forward. A unit is one key/value head of one batch row: its keys are packed transposed and its
// values padded, once for all query heads that share them. Queries go in strips of a register
// block's rows; a strip's scores stay in L1 from Q Kᵀ through the softmax to P V. More than kKeys
// keys are met block by block with the online softmax. Only columns that some row of the strip sees
// are computed, so a causal mask costs little more than its half.
#include <cmath>
#include <limits>

#include "kernels/attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention.cc"  // NOLINT
#include "hwy/aligned_allocator.h"
#include "hwy/foreach_target.h"
#include "kernels/cpu/attention_call.h"
#include "kernels/cpu/attention_tile-inl.h"
#include "kernels/cpu/edge.h"
#include "kernels/parallel_for.h"

HWY_BEFORE_NAMESPACE();
namespace mega::kernels::HWY_NAMESPACE {

// Everything a unit needs in cache.
struct ForwardScratch {
  explicit ForwardScratch(const AttentionShape& s)
      : padded_v(PadUp(s.V)),
        keys(hwy::AllocateAligned<float>((s.K + kPanel - 1) / kPanel * kPanel * s.H + kPad)),
        values(hwy::AllocateAligned<float>(s.K * padded_v + kPad)),
        queries(hwy::AllocateAligned<float>(s.H * kTileRows + kPad)),
        scores(hwy::AllocateAligned<float>(kTileRows * kTileStep)),
        out(hwy::AllocateAligned<float>(kTileRows * padded_v + kPad)) {}
  using Floats = hwy::AlignedFreeUniquePtr<float[]>;
  int64_t padded_v;
  Floats keys;     // [panels][H][kPanel]
  Floats values;   // [K][padded_v]
  Floats queries;  // of a strip, [H][kTileRows], scaled
  Floats scores;   // of a strip, [kTileRows][kTileStep]
  Floats out;      // of a strip, [kTileRows][padded_v], not yet divided by the sum
};

// Running softmax of a row.
struct SoftmaxState {
  float most = -std::numeric_limits<float>::infinity();  // largest score so far
  float sum = 0;                                         // of e^(score - most)
};

// Scores become e^(score - most). Returns what the sums before must be multiplied by.
HWY_INLINE float OnlineSoftmaxRow(Columns columns, float* scores, SoftmaxState& state) {
  const F32 d;
  const int64_t lanes = Lanes(), count = columns.end - columns.begin;
  float* x = scores + columns.begin;
  auto m = hn::LoadU(d, x);
  for (int64_t j = lanes; j < count; j += lanes) m = hn::Max(m, hn::LoadU(d, x + j));
  const float before = state.most;
  state.most = std::max(before, hn::GetLane(hn::MaxOfLanes(d, m)));
  const float rescale =
      state.sum == 0 || before == state.most ? 1.0f : std::exp(before - state.most);
  const float sum = RowSum(count, [&](auto tag, int64_t j) HWY_ATTR {
    const auto e = ExpBelow88(tag, hn::Sub(hn::LoadU(tag, x + j), hn::Set(tag, state.most)));
    hn::StoreU(e, tag, x + j);
    return e;
  });
  state.sum = state.sum * rescale + sum;
  return rescale;
}

// A strip of rows against one block of keys: scores, softmax, and P V added to s.out.
HWY_INLINE void ForwardBlock(const AttentionShape& shape, const KeyRange* ranges, int64_t rows,
                             int64_t first_key, SoftmaxState* states, ForwardScratch& s) {
  const Columns all = UnionOf(ranges, rows, first_key);
  if (all.empty()) return;
  const Columns columns = all.Padded();
  TransposedProduct(rows, columns, shape.H, s.queries.get(), kTileRows,
                    s.keys.get() + first_key * shape.H, s.scores.get());
  for (int64_t i = 0; i < rows; ++i) {
    const Columns row = ColumnsOf(ranges[i], first_key);
    float* scores = s.scores.get() + i * kTileStep;
    if (row.empty()) {
      std::fill(scores + columns.begin, scores + columns.end, 0.0f);
      continue;
    }
    MaskRow(columns, row, scores);
    const float rescale = OnlineSoftmaxRow(columns, scores, states[i]);
    if (rescale != 1.0f) {
      float* out = s.out.get() + i * s.padded_v;
      ForEachVector(s.padded_v, [&](auto d, int64_t c) HWY_ATTR {
        hn::StoreU(hn::Mul(hn::LoadU(d, out + c), hn::Set(d, rescale)), d, out + c);
      });
    }
  }
  Multiply<kTileStep, true>(rows, s.padded_v, all.end - all.begin, s.scores.get() + all.begin, 1,
                            s.values.get() + (first_key + all.begin) * s.padded_v, s.padded_v,
                            s.out.get(), s.padded_v);
}

// Queries [i0, i0 + rows) of head n of batch row b.
HWY_INLINE void ForwardStrip(const AttentionCall& call, int64_t b, int64_t n, int64_t i0,
                             int64_t rows, ForwardScratch& s) {
  const auto& [B, S, K, N, G, H, V] = call.shape;
  const KeyRange* ranges = call.ranges + i0;
  const float* q = AttentionCall::Row(call.q, S, N, H, b, i0, n);
  float* o = AttentionCall::Row(call.o, S, N, V, b, i0, n);
  Transpose(q, N * H, rows, H, call.scale, s.queries.get(), kTileRows);
  Prefetch(q + kTileRows * N * H, N * H, std::min<int64_t>(kTileRows, S - i0 - rows), H);
  PrefetchForWrite(o, N * V, rows, V);
  std::fill_n(s.out.get(), rows * s.padded_v, 0.0f);
  SoftmaxState states[kTileRows];
  // Ends of ranges never decrease from a query to the next.
  for (int64_t j0 = 0; j0 < ranges[rows - 1].end; j0 += kKeys)
    ForwardBlock(call.shape, ranges, rows, j0, states, s);
  for (int64_t i = 0; i < rows; ++i) {
    const bool sees = states[i].sum != 0;
    call.lse[(b * N + n) * S + i0 + i] =
        sees ? states[i].most + std::log(states[i].sum) : -std::numeric_limits<float>::infinity();
    const float factor = sees ? 1.0f / states[i].sum : 0.0f;
    const float* from = s.out.get() + i * s.padded_v;
    ForEachVector(V, [&](auto d, int64_t c) HWY_ATTR {
      hn::StoreU(hn::Mul(hn::LoadU(d, from + c), hn::Set(d, factor)), d, o + i * N * V + c);
    });
  }
}

void AttentionForwardUnits(const AttentionCall& call, int64_t begin, int64_t end) {
  const auto& [B, S, K, N, G, H, V] = call.shape;
  ForwardScratch s(call.shape);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t b = unit / G, g = unit % G;
    PackPanels(AttentionCall::Row(call.k, K, G, H, b, 0, g), G * H, K, H, s.keys.get());
    PackRows(AttentionCall::Row(call.v, K, G, V, b, 0, g), G * V, K, V, 1.0f, s.values.get(),
             s.padded_v);
    for (int64_t n = g * (N / G); n < (g + 1) * (N / G); ++n)
      for (int64_t i = 0; i < S; i += kTileRows)
        ForwardStrip(call, b, n, i, std::min<int64_t>(kTileRows, S - i), s);
  }
}

}  // namespace mega::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mega::kernels {
HWY_EXPORT(AttentionForwardUnits);

void AttentionForward(Stream& stream, TensorView q_BSNH, TensorView k_BKGH, TensorView v_BKGV,
                      float scale, const AttentionMask& mask, TensorView o_BSNV,
                      TensorView lse_BNS) {
  const AttentionShape shape = CheckAttention(q_BSNH, k_BKGH, v_BKGV, o_BSNV, lse_BNS);
  const std::vector<KeyRange> ranges = VisibleKeys(mask, shape.S, shape.K);
  const AttentionCall call{.shape = shape,
                           .scale = scale,
                           .ranges = ranges.data(),
                           .q = Data(q_BSNH),
                           .k = Data(k_BKGH),
                           .v = Data(v_BKGV),
                           .o = Data(o_BSNV),
                           .lse = Data(lse_BNS)};
  ParallelFor(stream, shape.B * shape.G, 1, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(AttentionForwardUnits)(call, begin, end);
  });
}

}  // namespace mega::kernels
#endif
