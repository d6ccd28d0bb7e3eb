// The micro-batches of one data-parallel rank as token and label tensors. Rows beyond the global
// batch are fully masked, so any batch size runs on any number of ranks (datasets/batch_rows.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "worker/engine/datasets/micro_batch.h"
#include "worker/engine/tensor/pool.h"
#include "worker/engine/transformer/stage.h"

namespace mega::engine {

class BatchFeed {
 public:
  // Buffers for one step's micro-batches live as long as the feed.
  BatchFeed(const datasets::SampleSource& source, const datasets::BatchShape& shape,
            int64_t dp_rank, Pool& pool);

  // The micro-batches of `step` (from 1). The span stays valid until the next call.
  absl::StatusOr<std::span<const transformer::MicroBatch>> Read(int64_t step);

 private:
  const datasets::SampleSource& source_;
  const datasets::BatchShape shape_;
  const int64_t dp_rank_;
  std::vector<Tensor> tensors_;
  std::vector<transformer::MicroBatch> micro_batches_;
};

}  // namespace mega::engine
