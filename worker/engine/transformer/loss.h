// The output end: final norm → head → cross entropy, fused and chunked over tokens, so that the
// [T,V] logits are never in memory at once.  Hsu et al. 2024 (Liger Kernel), arXiv:2410.10989.
//   T tokens · D model width · V vocabulary
// A chunk's logits become their own gradient in place, and the head's two products with it follow
// at once; so in training **Forward already adds the head's weight gradient** and what is left for
// the backward is the norm. The loss scale must therefore be set before Forward.
#pragma once

#include <cstdint>

#include "coordinator/planner/model/model_spec.h"
#include "worker/engine/distributed/parameter.h"
#include "worker/engine/transformer/context.h"
#include "worker/engine/transformer/saved.h"

namespace mega::transformer {

struct Loss {
  double sum = 0;      // of token losses, nats
  int64_t tokens = 0;  // that were not masked
};

class LossHead {
 public:
  // head_VD is the embedding table when the model ties them.
  LossHead(const Context& context, const planner::ModelSpec& spec, distributed::Parameter* norm_D,
           distributed::Parameter* head_VD);

  // labels_BS i32. `scale`: what each token's loss counts in the gradient, 1 / tokens of the
  // global batch.
  Loss Forward(int64_t micro_batch, TensorView labels_BS, Tensor x_TD, float scale);
  Tensor BackwardInput(int64_t micro_batch);
  void BackwardWeight(int64_t micro_batch);

  // Logits of every row of x_TD: generation.
  Tensor Logits(TensorView x_TD) const;

  void Clear() { saved_.Clear(); }

  // Rows of one chunk: about a mebibyte of logits, but enough rows for the products to be dense.
  static int64_t ChunkRows(int64_t vocab_size);

 private:
  struct Kept {
    Tensor x_TD, rstd_T, dnormed_TD;
  };
  const Context& context_;
  const float epsilon_;
  distributed::Parameter& norm_D_;
  distributed::Parameter& head_VD_;
  Saved<Kept> saved_;
};

}  // namespace mega::transformer
