// The micro-batches of one data-parallel rank: samples of the dataset as token and label tensors.
// Rows beyond the global batch are fully masked, so any batch size runs on any number of ranks
// (datasets/batch_rows.h has the rule).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "worker/engine/datasets/sample_source.h"
#include "worker/engine/tensor/pool.h"
#include "worker/engine/transformer/stage.h"

namespace mega::engine {

struct BatchShape {
  int64_t global_batch_size = 1;
  int64_t micro_batch_size = 1;
  int64_t dp_rank = 0;
  int64_t dp_size = 1;
};

class BatchFeed {
 public:
  // Buffers for one step's micro-batches live as long as the feed.
  BatchFeed(const datasets::SampleSource& source, const BatchShape& shape, Pool& pool);

  // The micro-batches of `step` (from 1). The span stays valid until the next call.
  absl::StatusOr<std::span<const transformer::MicroBatch>> Read(int64_t step);

 private:
  absl::Status FillRow(int64_t step, int64_t global_row, int32_t* tokens, int32_t* labels);

  const datasets::SampleSource& source_;
  const BatchShape shape_;
  std::vector<Tensor> tensors_;
  std::vector<transformer::MicroBatch> micro_batches_;
  std::vector<int32_t> sample_;  // seq_length + 1 tokens: labels are the inputs moved by one
};

}  // namespace mega::engine
