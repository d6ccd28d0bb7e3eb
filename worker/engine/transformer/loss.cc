#include "worker/engine/transformer/loss.h"

#include <algorithm>
#include <utility>

#include "kernels/cross_entropy.h"
#include "kernels/elementwise.h"
#include "kernels/label_count.h"
#include "kernels/matmul.h"
#include "kernels/rms_norm.h"

namespace mega::transformer {

LossHead::LossHead(const Context& context, const planner::ModelSpec& spec,
                   distributed::Parameter* norm_D, distributed::Parameter* head_VD)
    : context_(context),
      epsilon_(static_cast<float>(spec.norm_epsilon)),
      norm_D_(*norm_D),
      head_VD_(*head_VD) {}

int64_t LossHead::ChunkRows(int64_t vocab_size) {
  return std::clamp<int64_t>((int64_t{1} << 18) / vocab_size, 128, 1024);
}

Loss LossHead::Forward(int64_t micro_batch, TensorView labels_BS, Tensor x_TD, float scale) {
  Stream& stream = context_.stream;
  const int64_t T = x_TD.dim(0), D = x_TD.dim(1), V = head_VD_.value.dim(0);
  const int64_t chunk = std::min(T, ChunkRows(V));
  const TensorView labels_T = labels_BS.View({T});
  const bool train = !context_.forward_only;

  Tensor normed_TD = context_.Workspace({T, D});
  Kept kept{.rstd_T = context_.Activation({T})};
  if (train) kept.dnormed_TD = context_.Activation({T, D});
  kernels::RmsNorm(stream, x_TD, norm_D_.value, normed_TD, kept.rstd_T, epsilon_);

  Tensor logits_CV = context_.Workspace({chunk, V});
  Tensor loss_T = context_.Workspace({T});
  Tensor lse_C = context_.Workspace({chunk});
  for (int64_t begin = 0; begin < T; begin += chunk) {
    const int64_t rows = std::min(chunk, T - begin);
    const TensorView normed = normed_TD.view().Rows(begin, rows);
    const TensorView labels = labels_T.Rows(begin, rows);
    const TensorView logits = logits_CV.view().Rows(0, rows);
    const TensorView lse = lse_C.view().Rows(0, rows);
    kernels::LinearForward(stream, normed, head_VD_.value, logits);
    kernels::CrossEntropyForward(stream, logits, labels, loss_T.view().Rows(begin, rows), lse);
    if (!train) continue;
    kernels::CrossEntropyBackward(stream, logits, labels, lse, scale, logits);
    kernels::LinearBackwardInput(stream, logits, head_VD_.value,
                                 kept.dnormed_TD.view().Rows(begin, rows));
    kernels::LinearBackwardWeight(stream, logits, normed, head_VD_.main_grad);
  }

  const Loss loss{.sum = kernels::Sum(stream, loss_T),
                  .tokens = kernels::CountLabels(stream, labels_T)};
  kept.x_TD = std::move(x_TD);
  if (train) saved_.Put(micro_batch, std::move(kept));
  return loss;
}

Tensor LossHead::BackwardInput(int64_t micro_batch) {
  const Kept& kept = saved_.At(micro_batch);
  Tensor dx_TD = context_.Activation(kept.x_TD.shape());
  kernels::RmsNormBackwardInput(context_.stream, kept.dnormed_TD, kept.x_TD, norm_D_.value,
                                kept.rstd_T, dx_TD, /*accumulate_dx=*/false);
  return dx_TD;
}

void LossHead::BackwardWeight(int64_t micro_batch) {
  const Kept& kept = saved_.At(micro_batch);
  kernels::RmsNormBackwardWeight(context_.stream, kept.dnormed_TD, kept.x_TD, kept.rstd_T,
                                 norm_D_.main_grad);
  saved_.Drop(micro_batch);
}

Tensor LossHead::Logits(TensorView x_TD) const {
  Stream& stream = context_.stream;
  const int64_t T = x_TD.dim(0), D = x_TD.dim(1);
  Tensor normed_TD = context_.Workspace({T, D});
  Tensor rstd_T = context_.Workspace({T});
  kernels::RmsNorm(stream, x_TD, norm_D_.value, normed_TD, rstd_T, epsilon_);
  Tensor logits_TV = context_.Workspace({T, head_VD_.value.dim(0)});
  kernels::LinearForward(stream, normed_TD, head_VD_.value, logits_TV);
  return logits_TV;
}

}  // namespace mega::transformer
