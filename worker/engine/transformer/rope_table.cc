#include "worker/engine/transformer/rope_table.h"

#include <numeric>
#include <vector>

#include "kernels/elementwise.h"
#include "kernels/rope.h"

namespace mega::transformer {
namespace {

// A host array as the view that Copy takes.
TensorView HostView(std::span<const int32_t> values) {
  return TensorView(const_cast<int32_t*>(values.data()), DType::kI32,
                    Shape({static_cast<int64_t>(values.size())}));
}

}  // namespace

RopeTable::RopeTable(const Context& context, const planner::ModelSpec& spec) : context_(context) {
  const int64_t positions = spec.max_position_embeddings;
  // They live as long as the weights and are read like them.
  const Shape shape({positions, spec.head_dim / 2});
  cos_ = context.pool.Allocate(DType::kF32, shape, Purpose::kWeights);
  sin_ = context.pool.Allocate(DType::kF32, shape, Purpose::kWeights);
  std::vector<int32_t> all(positions);
  std::iota(all.begin(), all.end(), 0);
  kernels::RopeTable(context.stream, all, spec.rope_theta, cos_, sin_);
}

TensorView RopeTable::SequentialRows(int64_t rows, int64_t positions) {
  if (rows != rows_ || positions != positions_) {
    std::vector<int32_t> sequence(rows * positions);
    for (int64_t t = 0; t < rows * positions; ++t)
      sequence[t] = static_cast<int32_t>(t % positions);
    Rows(sequence);
    rows_ = rows;
    positions_ = positions;
  }
  return rows_T_;
}

TensorView RopeTable::Rows(std::span<const int32_t> positions) {
  for (const int32_t position : positions) MEGA_CHECK_LT(position, max_positions());
  const int64_t count = static_cast<int64_t>(positions.size());
  if (!rows_T_.defined() || rows_T_.dim(0) != count)
    rows_T_ = context_.pool.Allocate(DType::kI32, Shape({count}), Purpose::kWorkspace);
  kernels::Copy(context_.stream, HostView(positions), rows_T_);
  rows_ = positions_ = 0;
  return rows_T_;
}

}  // namespace mega::transformer
