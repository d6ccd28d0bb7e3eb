// Residual attention block: y = x + out(attend(rope(qkv(norm(x))))).
//   T tokens = B rows · S positions · D model width · N query heads · G key/value heads (N % G ==
//   0) H head size · C = (N + 2G)·H width of the fused projection
// The rows of qkv are laid out per key/value group [q…q, k, v], so that a projection viewed as
// [T·G, (N/G + 2)·H] splits into q, k and v by columns alone.
// BackwardInput keeps what BackwardWeight needs; the latter frees the micro-batch.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "coordinator/planner/model/model_spec.h"
#include "worker/engine/distributed/parameter.h"
#include "worker/engine/transformer/context.h"
#include "worker/engine/transformer/kv_cache.h"
#include "worker/engine/transformer/rope_table.h"
#include "worker/engine/transformer/saved.h"

namespace mega::transformer {

class Attention {
 public:
  struct Weights {
    distributed::Parameter* norm_D;
    distributed::Parameter* qkv_CD;
    distributed::Parameter* out_DNH;
  };
  Attention(const Context& context, const planner::ModelSpec& spec, RopeTable& rope,
            const Weights& weights);

  Tensor Forward(int64_t micro_batch, int64_t rows, Tensor x_TD);
  Tensor BackwardInput(int64_t micro_batch, Tensor dy_TD);
  void BackwardWeight(int64_t micro_batch);
  // In the order in which BackwardWeight finishes them.
  std::array<distributed::Parameter*, 3> parameters() const;

  // One pass of generation over tokens of several sequences, back to back: lengths[i] of sequence
  // i. `rope_rows_T` holds the position of each.
  Tensor Infer(TensorView x_TD, TensorView rope_rows_T, std::span<const int64_t> lengths,
               int64_t layer, KvCache& cache);

  void Clear() { saved_.Clear(); }

 private:
  struct Heads {
    Tensor q_TNH, k_TGH, v_TGH;  // q and k turned by their positions
  };
  struct Kept {
    int64_t rows = 0;
    Tensor x_TD, normed_TD, rstd_T, o_TNH, lse_BNS;
    Heads heads;
    Tensor dy_TD, dqkv_TC, dnormed_TD;  // from BackwardInput on
  };
  Heads Project(TensorView normed_TD, TensorView rope_rows_T) const;
  TensorView PerGroup(TensorView fused_TC) const;

  const Context& context_;
  const int64_t num_heads_, num_groups_, head_dim_;
  const float epsilon_, scale_;
  const bool reference_;
  RopeTable& rope_;
  Weights w_;
  Saved<Kept> saved_;
};

}  // namespace mega::transformer
