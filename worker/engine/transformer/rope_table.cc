#include "worker/engine/transformer/rope_table.h"

#include <algorithm>
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

RopeTable::RopeTable(const Context& context, const planner::ModelSpec& spec)
    : context_(context),
      max_positions_(spec.max_position_embeddings),
      half_head_(spec.head_dim / 2),
      theta_(spec.rope_theta) {}

void RopeTable::Hold(int64_t count, int64_t room) {
  MEGA_CHECK_LE(count, max_positions_);
  if (cos_.defined() && cos_.dim(0) >= count) return;
  const int64_t positions = std::min(std::max(count, room), max_positions_);
  const Shape shape({positions, half_head_});
  cos_ = {};
  sin_ = {};
  // They live as long as the weights and are read like them.
  cos_ = context_.pool.Allocate(DType::kF32, shape, Purpose::kWeights);
  sin_ = context_.pool.Allocate(DType::kF32, shape, Purpose::kWeights);
  std::vector<int32_t> all(positions);
  std::iota(all.begin(), all.end(), 0);
  kernels::RopeTable(context_.stream, all, theta_, cos_, sin_);
}

TensorView RopeTable::SequentialRows(int64_t rows, int64_t positions) {
  if (rows != rows_ || positions != positions_) {
    std::vector<int32_t> sequence(rows * positions);
    for (int64_t t = 0; t < rows * positions; ++t)
      sequence[t] = static_cast<int32_t>(t % positions);
    Hold(positions, positions);  // a training run has one length
    Rows(sequence);
    rows_ = rows;
    positions_ = positions;
  }
  return rows_T_;
}

TensorView RopeTable::Rows(std::span<const int32_t> positions) {
  const int64_t count = static_cast<int64_t>(positions.size());
  if (count > 0) {
    const int64_t needed = *std::max_element(positions.begin(), positions.end()) + int64_t{1};
    Hold(needed, 2 * needed);  // a generated sequence grows token by token
  }
  if (!rows_T_.defined() || rows_T_.dim(0) != count)
    rows_T_ = context_.pool.Allocate(DType::kI32, Shape({count}), Purpose::kWorkspace);
  kernels::Copy(context_.stream, HostView(positions), rows_T_);
  rows_ = positions_ = 0;
  return rows_T_;
}

}  // namespace mega::transformer
