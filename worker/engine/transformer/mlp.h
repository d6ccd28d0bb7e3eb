// Residual feed-forward block: y = x + down(silu(gate(norm(x))) · up(norm(x))).
//   T tokens · D model width · F width of the feed-forward part; gate_up_2FD = [gate | up] rows
// BackwardInput keeps what BackwardWeight needs; the latter frees the micro-batch.
#pragma once

#include <array>
#include <cstdint>

#include "coordinator/planner/model/model_spec.h"
#include "worker/engine/distributed/parameter.h"
#include "worker/engine/transformer/context.h"
#include "worker/engine/transformer/saved.h"

namespace mega::transformer {

class Mlp {
 public:
  struct Weights {
    distributed::Parameter* norm_D;
    distributed::Parameter* gate_up_2FD;
    distributed::Parameter* down_DF;
  };
  Mlp(const Context& context, const planner::ModelSpec& spec, const Weights& weights);

  Tensor Forward(int64_t micro_batch, Tensor x_TD);
  Tensor BackwardInput(int64_t micro_batch, Tensor dy_TD);
  void BackwardWeight(int64_t micro_batch);
  // In the order in which BackwardWeight finishes them.
  std::array<distributed::Parameter*, 3> parameters() const;

  // Forward that keeps nothing and leaves x to the caller: generation.
  Tensor Infer(TensorView x_TD);

  void Clear() { saved_.Clear(); }

 private:
  struct Kept {
    Tensor x_TD, normed_TD, rstd_T, gate_up_T2F, act_TF;
    Tensor dy_TD, dnormed_TD;  // from BackwardInput on; gate_up_T2F then holds its own gradient
  };
  Tensor Compute(TensorView x_TD, Kept& kept) const;

  const Context& context_;
  const float epsilon_;
  Weights w_;
  Saved<Kept> saved_;
};

}  // namespace mega::transformer
