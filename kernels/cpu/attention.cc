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

// Running softmax of a strip's rows.
struct SoftmaxState {
  float most[kTileRows];  // largest score so far
  float sum[kTileRows];   // of e^(score - most)
};

// Scores of one row become e^(score - most); what was summed before is rescaled by the result.
HWY_INLINE float OnlineSoftmaxRow(Columns row, float* scores, float* most, float* sum) {
  const F32 d;
  const Columns padded = row.Padded();
  const int64_t lanes = Lanes(), count = padded.end - padded.begin;
  MaskEdges(row, scores);
  float* x = scores + padded.begin;
  auto m = hn::LoadU(d, x);
  for (int64_t j = lanes; j < count; j += lanes) m = hn::Max(m, hn::LoadU(d, x + j));
  const float before = *most;
  *most = std::max(before, hn::GetLane(hn::MaxOfLanes(d, m)));
  const auto shift = hn::Set(d, *most);
  const float total = RowSum(count, [&](auto tag, int64_t j) HWY_ATTR {
    const auto e = ExpBelow88(tag, hn::Sub(hn::LoadU(tag, x + j), hn::Set(tag, *most)));
    hn::StoreU(e, tag, x + j);
    return e;
  });
  (void)shift;
  const float rescale = before == *most ? 1.0f : std::exp(before - *most);
  *sum = *sum * rescale + total;
  return rescale;
}

void AttentionForwardUnits(const AttentionCall& call, int64_t begin, int64_t end) {
  const auto [B, S, K, N, G, H, V] = call.shape;
  const int64_t padded_v = PadUp(V), panels = (K + kPanel - 1) / kPanel;
  const auto keys = hwy::AllocateAligned<float>(panels * kPanel * H + kPad);
  const auto values = hwy::AllocateAligned<float>(K * padded_v + kPad);
  const auto queries = hwy::AllocateAligned<float>(H * kTileRows + kPad);
  const auto tile = hwy::AllocateAligned<float>(kTileRows * kTileStep);
  const auto out = hwy::AllocateAligned<float>(kTileRows * padded_v + kPad);

  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t b = unit / G, g = unit % G;
    PackPanels(AttentionCall::Row(call.k, K, G, H, b, 0, g), G * H, K, H, keys.get());
    PackRows(AttentionCall::Row(call.v, K, G, V, b, 0, g), G * V, K, V, 1.0f, values.get(),
             padded_v);
    for (int64_t n = g * (N / G); n < (g + 1) * (N / G); ++n) {
      for (int64_t i0 = 0; i0 < S; i0 += kTileRows) {
        const int64_t rows = std::min<int64_t>(kTileRows, S - i0);
        const KeyRange* ranges = call.ranges + i0;
        Transpose(AttentionCall::Row(call.q, S, N, H, b, i0, n), N * H, rows, H, call.scale,
                  queries.get(), kTileRows);
        std::fill_n(out.get(), rows * padded_v, 0.0f);
        SoftmaxState state;
        std::fill_n(state.most, rows, -std::numeric_limits<float>::infinity());
        std::fill_n(state.sum, rows, 0.0f);

        const int64_t last_key = ranges[rows - 1].end;  // ends never decrease
        for (int64_t j0 = 0; j0 < last_key; j0 += kKeys) {
          const Columns all = UnionOf(ranges, rows, j0);
          if (all.empty()) continue;
          TransposedProduct(rows, all.Padded(), H, queries.get(), kTileRows, keys.get() + j0 * H,
                            tile.get());
          for (int64_t i = 0; i < rows; ++i) {
            const Columns row = ColumnsOf(ranges[i], j0);
            float* scores = tile.get() + i * kTileStep;
            if (!row.empty()) {
              const float rescale = OnlineSoftmaxRow(row, scores, &state.most[i], &state.sum[i]);
              if (rescale != 1.0f && j0 > 0)
                for (int64_t c = 0; c < padded_v; ++c) out.get()[i * padded_v + c] *= rescale;
            }
            ClearOutside(all.Padded(), row.Padded(), scores);
          }
          Multiply<kTileStep, true>(rows, padded_v, all.end - all.begin, tile.get() + all.begin, 1,
                                    values.get() + (j0 + all.begin) * padded_v, padded_v, out.get(),
                                    padded_v);
        }
        for (int64_t i = 0; i < rows; ++i) {
          const bool sees = state.sum[i] != 0;
          call.lse[(b * N + n) * S + i0 + i] = sees ? state.most[i] + std::log(state.sum[i])
                                                    : -std::numeric_limits<float>::infinity();
          const float factor = sees ? 1.0f / state.sum[i] : 0.0f;
          float* to = AttentionCall::Row(call.o, S, N, V, b, i0 + i, n);
          const float* from = out.get() + i * padded_v;
          ForEachVector(V, [&](auto d, int64_t c) HWY_ATTR {
            hn::StoreU(hn::Mul(hn::LoadU(d, from + c), hn::Set(d, factor)), d, to + c);
          });
        }
      }
    }
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
