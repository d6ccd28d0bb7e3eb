#include "worker/engine/transformer/embedding.h"

#include "kernels/embedding.h"

namespace mega::transformer {

Tensor Embedding::Forward(int64_t micro_batch, TensorView tokens_BS) {
  const TensorView tokens_T = tokens_BS.View({tokens_BS.elements()});
  Tensor x_TD = context_.Activation({tokens_T.dim(0), table_VD_.value.dim(1)});
  kernels::EmbeddingForward(context_.stream, tokens_T, table_VD_.value, x_TD);
  if (!context_.forward_only) saved_.Put(micro_batch, {.tokens_T = tokens_T});
  return x_TD;
}

void Embedding::BackwardInput(int64_t micro_batch, Tensor dx_TD) {
  saved_.At(micro_batch).dx_TD = std::move(dx_TD);
}

void Embedding::BackwardWeight(int64_t micro_batch) {
  const Kept& kept = saved_.At(micro_batch);
  kernels::EmbeddingBackward(context_.stream, kept.tokens_T, kept.dx_TD, table_VD_.main_grad);
  saved_.Drop(micro_batch);
}

}  // namespace mega::transformer
