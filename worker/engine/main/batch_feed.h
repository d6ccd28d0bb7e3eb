// The micro-batches of one data-parallel rank: samples of a dataset as token and label tensors.
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
  int64_t seq_length = 1;
  int64_t dp_rank = 0;
  int64_t dp_size = 1;
};

class BatchFeed {
 public:
  // Allocates the buffers of one step's micro-batches, which training and evaluation share.
  // RESOURCE_EXHAUSTED when they do not fit.
  static absl::StatusOr<BatchFeed> Make(const BatchShape& shape, Pool& pool, Stream& stream);

  // The micro-batches of the step that begins with sample `first_sample` of `source`, which is the
  // number of samples consumed before. The span stays valid until the next call.
  absl::StatusOr<std::span<const transformer::MicroBatch>> Read(
      const datasets::SampleSource& source, int64_t first_sample);

 private:
  BatchFeed(const BatchShape& shape, Stream& stream);
  // Row `row` of the micro-batch in tokens_ and labels_.
  absl::Status FillRow(const datasets::SampleSource& source, int64_t first_sample,
                       int64_t global_row, int64_t row);

  BatchShape shape_;
  Stream* stream_;
  std::vector<Tensor> tensors_;
  std::vector<transformer::MicroBatch> micro_batches_;
  std::vector<int32_t> sample_;  // seq_length + 1 tokens: labels are the inputs moved by one
  std::vector<int32_t> tokens_, labels_;  // one micro-batch on the host
};

}  // namespace mega::engine
