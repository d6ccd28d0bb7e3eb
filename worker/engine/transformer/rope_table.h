// Angles of the rotary embedding, computed once for the positions that occur and shared by all
// layers. A model may allow far more positions than a sequence has: a table of all of them would be
// larger than many a model.
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
  // Any positions, one a token, each below max_position_embeddings.
  TensorView Rows(std::span<const int32_t> positions);

  // Of all positions asked for so far; valid until either is called again.
  const TensorView& cos() const { return cos_.view(); }
  const TensorView& sin() const { return sin_.view(); }

 private:
  // Makes the table hold positions 0 … count-1, and those up to `room` when it must grow.
  void Hold(int64_t count, int64_t room);

  const Context& context_;
  const int64_t max_positions_, half_head_;
  const double theta_;
  Tensor cos_, sin_;                  // [positions, head_dim / 2]
  Tensor rows_T_;                     // i32
  int64_t rows_ = 0, positions_ = 0;  // what rows_T_ holds; 0: something else
};

}  // namespace mega::transformer
