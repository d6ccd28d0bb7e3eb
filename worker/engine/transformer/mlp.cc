#include "worker/engine/transformer/mlp.h"

#include <utility>

#include "kernels/activation.h"
#include "kernels/elementwise.h"
#include "kernels/matmul.h"
#include "kernels/rms_norm.h"

namespace mega::transformer {

Mlp::Mlp(const Context& context, const planner::ModelSpec& spec, const Weights& weights)
    : context_(context), epsilon_(static_cast<float>(spec.norm_epsilon)), w_(weights) {}

std::array<distributed::Parameter*, 3> Mlp::parameters() const {
  return {w_.down_DF, w_.gate_up_2FD, w_.norm_D};
}

Tensor Mlp::Compute(TensorView x_TD, Kept& kept) const {
  Stream& stream = context_.stream;
  const int64_t T = x_TD.dim(0), D = x_TD.dim(1), F = w_.down_DF->value.dim(1);
  kept.normed_TD = context_.Activation({T, D});
  kept.rstd_T = context_.Activation({T});
  kernels::RmsNorm(stream, x_TD, w_.norm_D->value, kept.normed_TD, kept.rstd_T, epsilon_);
  kept.gate_up_T2F = context_.Activation({T, 2 * F});
  kernels::LinearForward(stream, kept.normed_TD, w_.gate_up_2FD->value, kept.gate_up_T2F);
  kept.act_TF = context_.Activation({T, F});
  kernels::SwiGlu(stream, kept.gate_up_T2F, kept.act_TF);
  Tensor y_TD = context_.Activation({T, D});
  kernels::LinearForward(stream, kept.act_TF, w_.down_DF->value, y_TD);
  kernels::AddInPlace(stream, x_TD, y_TD);
  return y_TD;
}

Tensor Mlp::Forward(int64_t micro_batch, Tensor x_TD) {
  Kept kept;
  Tensor y_TD = Compute(x_TD, kept);
  kept.x_TD = std::move(x_TD);
  if (!context_.forward_only) saved_.Put(micro_batch, std::move(kept));
  return y_TD;
}

Tensor Mlp::Infer(TensorView x_TD) {
  Kept kept;
  return Compute(x_TD, kept);
}

Tensor Mlp::BackwardInput(int64_t micro_batch, Tensor dy_TD) {
  Stream& stream = context_.stream;
  Kept& kept = saved_.At(micro_batch);
  const int64_t T = dy_TD.dim(0), D = dy_TD.dim(1), F = kept.act_TF.dim(1);
  Tensor dact_TF = context_.Workspace({T, F});
  kernels::LinearBackwardInput(stream, dy_TD, w_.down_DF->value, dact_TF);
  // In place: the pre-activations have no further use.
  kernels::SwiGluBackward(stream, dact_TF, kept.gate_up_T2F, kept.gate_up_T2F);
  kept.dnormed_TD = context_.Activation({T, D});
  kernels::LinearBackwardInput(stream, kept.gate_up_T2F, w_.gate_up_2FD->value, kept.dnormed_TD);
  Tensor dx_TD = context_.Activation({T, D});
  kernels::Copy(stream, dy_TD, dx_TD);  // the residual's share
  kernels::RmsNormBackwardInput(stream, kept.dnormed_TD, kept.x_TD, w_.norm_D->value, kept.rstd_T,
                                dx_TD, /*accumulate_dx=*/true);
  kept.dy_TD = std::move(dy_TD);
  return dx_TD;
}

void Mlp::BackwardWeight(int64_t micro_batch) {
  Stream& stream = context_.stream;
  const Kept& kept = saved_.At(micro_batch);
  kernels::LinearBackwardWeight(stream, kept.dy_TD, kept.act_TF, w_.down_DF->main_grad);
  kernels::LinearBackwardWeight(stream, kept.gate_up_T2F, kept.normed_TD,
                                w_.gate_up_2FD->main_grad);
  kernels::RmsNormBackwardWeight(stream, kept.dnormed_TD, kept.x_TD, kept.rstd_T,
                                 w_.norm_D->main_grad);
  saved_.Drop(micro_batch);
}

}  // namespace mega::transformer
