#include "kernels/cpu/attention_mask.h"

#include <algorithm>
#include <limits>

#include "kernels/cpu/edge.h"

namespace mega::kernels {

std::vector<KeyRange> VisibleKeys(const AttentionMask& mask, int64_t S, int64_t K) {
  MEGA_CHECK_LE(K, int64_t{std::numeric_limits<int32_t>::max()});
  MEGA_CHECK_GE(mask.window, 0);
  const std::span<const int32_t> documents = mask.cu_seqlens;
  size_t document = 0;  // the query's own is [documents[document], documents[document + 1])
  if (!documents.empty()) {
    MEGA_CHECK_EQ(S, K);
    MEGA_CHECK_EQ(documents.front(), 0);
    MEGA_CHECK_EQ(int64_t{documents.back()}, S);
    MEGA_CHECK(std::is_sorted(documents.begin(), documents.end()));
  }
  std::vector<KeyRange> ranges(static_cast<size_t>(S));
  for (int64_t i = 0; i < S; ++i) {
    const int64_t diagonal = i + (K - S);
    int64_t begin = 0, end = K;
    if (mask.causal) end = std::min(end, diagonal + 1);
    if (mask.window > 0) begin = std::max(begin, diagonal - mask.window + 1);
    if (!documents.empty()) {
      while (documents[document + 1] <= i) ++document;
      begin = std::max(begin, int64_t{documents[document]});
      end = std::min(end, int64_t{documents[document + 1]});
    }
    if (begin < end) ranges[i] = {static_cast<int32_t>(begin), static_cast<int32_t>(end)};
  }
  return ranges;
}

AttentionShape CheckAttention(const TensorView& q_BSNH, const TensorView& k_BKGH,
                              const TensorView& v_BKGV, const TensorView& o_BSNV,
                              const TensorView& lse_BNS) {
  const AttentionShape s{.B = q_BSNH.dim(0),
                         .S = q_BSNH.dim(1),
                         .K = k_BKGH.dim(1),
                         .N = q_BSNH.dim(2),
                         .G = k_BKGH.dim(2),
                         .H = q_BSNH.dim(3),
                         .V = v_BKGV.dim(3)};
  MEGA_CHECK_EQ(q_BSNH.rank(), 4);
  CheckShape(k_BKGH, {s.B, s.K, s.G, s.H});
  CheckShape(v_BKGV, {s.B, s.K, s.G, s.V});
  CheckShape(o_BSNV, {s.B, s.S, s.N, s.V});
  CheckShape(lse_BNS, {s.B, s.N, s.S});
  MEGA_CHECK(s.N == 0 || s.G > 0);
  MEGA_CHECK(s.G == 0 || s.N % s.G == 0);
  return s;
}

}  // namespace mega::kernels
