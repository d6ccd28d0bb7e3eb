// Softmax attention that never materialises S×S: blocks with online softmax, recomputed in
// backward. Dao 2023, arXiv:2307.08691.
//   B rows · S query positions · K key positions · N query heads · G key/value heads (N % G == 0;
//   query head n uses head n / (N / G)) · H head size · V value head size
//   q_BSNH, k_BKGH, v_BKGV → o_BSNV and lse_BNS (log-sum-exp of the scaled scores, f32).
// A query that sees no key gives 0 and lse = -inf, and no gradient. f32. Bitwise repeatable per
// device and thread count. Asynchronous on `stream`. No allocation that grows with S·K.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/device/stream.h"
#include "kernels/tensor_view.h"

namespace mega::kernels {

struct AttentionMask {
  bool causal = true;  // bottom-right aligned: query i sees keys j ≤ i + (K - S)
  int64_t window = 0;  // > 0: and only i + (K - S) - j < window
  // Documents inside each row: boundaries 0 = c0 < c1 < … = S; a query sees its own only. Needs
  // S == K. Empty: one document. The same boundaries hold for all rows.
  std::span<const int32_t> cu_seqlens;
};

void AttentionForward(Stream& stream, TensorView q_BSNH, TensorView k_BKGH, TensorView v_BKGV,
                      float scale, const AttentionMask& mask, TensorView o_BSNV,
                      TensorView lse_BNS);

// Overwrites dq, dk, dv.
void AttentionBackward(Stream& stream, TensorView q_BSNH, TensorView k_BKGH, TensorView v_BKGV,
                       TensorView o_BSNV, TensorView lse_BNS, TensorView do_BSNV, float scale,
                       const AttentionMask& mask, TensorView dq_BSNH, TensorView dk_BKGH,
                       TensorView dv_BKGV);

// The plain S×S form in double: the oracle of the tests and attention_backend: reference.
void AttentionForwardReference(Stream& stream, TensorView q_BSNH, TensorView k_BKGH,
                               TensorView v_BKGV, float scale, const AttentionMask& mask,
                               TensorView o_BSNV, TensorView lse_BNS);
void AttentionBackwardReference(Stream& stream, TensorView q_BSNH, TensorView k_BKGH,
                                TensorView v_BKGV, TensorView o_BSNV, TensorView lse_BNS,
                                TensorView do_BSNV, float scale, const AttentionMask& mask,
                                TensorView dq_BSNH, TensorView dk_BKGH, TensorView dv_BKGV);

}  // namespace mega::kernels
