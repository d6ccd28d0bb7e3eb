// The micro-batches of one data-parallel rank: which samples, read from the dataset, as token and
// label tensors. Rows beyond the global batch are fully masked, so any batch size runs on any
// number of ranks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "worker/engine/datasets/sample_source.h"
#include "worker/engine/tensor/pool.h"
#include "worker/engine/transformer/stage.h"

namespace mega::engine {

struct BatchShape {
  int64_t global_batch_size = 0;
  int64_t micro_batch_size = 0;
  int64_t micro_batches = 0;  // of each data-parallel rank
  int64_t seq_length = 0;
  int64_t dp_rank = 0;
  int64_t dp_size = 1;

  int64_t nominal_tokens() const { return global_batch_size * seq_length; }
};

class BatchFeed {
 public:
  // Buffers for one step's micro-batches live as long as the feed.
  BatchFeed(const datasets::SampleSource& source, const BatchShape& shape, Pool& pool);

  // Fills the micro-batches with samples [first_sample, first_sample + global_batch_size). The span
  // stays valid until the next call. Its `tokens` are this rank's unmasked labels.
  struct Batch {
    std::span<const transformer::MicroBatch> micro_batches;
    int64_t unmasked_tokens = 0;
  };
  absl::StatusOr<Batch> Read(int64_t first_sample);

 private:
  const datasets::SampleSource& source_;
  const BatchShape shape_;
  std::vector<Tensor> tokens_;
  std::vector<Tensor> labels_;
  std::vector<transformer::MicroBatch> micro_batches_;
  std::vector<int32_t> sample_;
};

}  // namespace mega::engine
