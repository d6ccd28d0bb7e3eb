// Token embedding: the input end of the model.
#pragma once

#include "worker/engine/distributed/parameter.h"
#include "worker/engine/transformer/context.h"
#include "worker/engine/transformer/saved.h"

namespace mega::transformer {

class Embedding {
 public:
  Embedding(const Context& context, distributed::Parameter* table_VD)
      : context_(context), table_VD_(*table_VD) {}

  // tokens_BS i32 → x_TD, T = B·S. The tokens must stay until BackwardWeight.
  Tensor Forward(int64_t micro_batch, TensorView tokens_BS);
  // Tokens have no gradient: this only keeps dx_TD for BackwardWeight.
  void BackwardInput(int64_t micro_batch, Tensor dx_TD);
  void BackwardWeight(int64_t micro_batch);

  void Clear() { saved_.Clear(); }

 private:
  struct Kept {
    TensorView tokens_T;
    Tensor dx_TD;
  };
  const Context& context_;
  distributed::Parameter& table_VD_;
  Saved<Kept> saved_;
};

}  // namespace mega::transformer
