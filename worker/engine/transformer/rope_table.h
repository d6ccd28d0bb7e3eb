// Angles of the rotary embedding, computed once for all positions and shared by all layers.
#pragma once

#include <cstdint>
#include <span>

#include "coordinator/planner/model/model_spec.h"
#include "worker/engine/transformer/context.h"

namespace mega::transformer {

class RopeTable {
 public:
  RopeTable(const Context& context, const planner::ModelSpec& spec);

  // Positions 0 … S-1 for each of B rows; the view lives until the next call of either.
  TensorView SequentialRows(int64_t rows, int64_t positions);
  // Any positions, one a token, each below max_positions().
  TensorView Rows(std::span<const int32_t> positions);

  const TensorView& cos() const { return cos_.view(); }
  const TensorView& sin() const { return sin_.view(); }
  int64_t max_positions() const { return cos_.dim(0); }

 private:
  const Context& context_;
  Tensor cos_, sin_;                  // [max_position_embeddings, head_dim / 2]
  Tensor rows_T_;                     // i32
  int64_t rows_ = 0, positions_ = 0;  // what rows_T_ holds; 0: something else
};

}  // namespace mega::transformer
