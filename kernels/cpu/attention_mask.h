// Which keys a query sees. Under every AttentionMask that is one interval.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/attention.h"

namespace mega::kernels {

struct KeyRange {
  int32_t begin = 0, end = 0;
  bool empty() const { return begin >= end; }
};

// One range for each of S queries over K keys. CHECKs the mask.
std::vector<KeyRange> VisibleKeys(const AttentionMask& mask, int64_t S, int64_t K);

// The sizes of a call, checked against each other.
struct AttentionShape {
  int64_t B, S, K, N, G, H, V;
};
AttentionShape CheckAttention(const TensorView& q_BSNH, const TensorView& k_BKGH,
                              const TensorView& v_BKGV, const TensorView& o_BSNV,
                              const TensorView& lse_BNS);

}  // namespace mega::kernels
