#include "worker/engine/main/batch_feed.h"

#include <algorithm>

#include "kernels/cross_entropy.h"
#include "worker/engine/datasets/batch_rows.h"

namespace mega::engine {

BatchFeed::BatchFeed(const datasets::SampleSource& source, const BatchShape& shape, Pool& pool)
    : source_(source), shape_(shape), sample_(shape.seq_length + 1) {
  const Shape rows{shape.micro_batch_size, shape.seq_length};
  for (int64_t i = 0; i < shape.micro_batches; ++i) {
    tokens_.push_back(pool.Allocate(DType::kI32, rows, Purpose::kActivations));
    labels_.push_back(pool.Allocate(DType::kI32, rows, Purpose::kActivations));
    micro_batches_.push_back({tokens_.back(), labels_.back()});
  }
}

absl::StatusOr<BatchFeed::Batch> BatchFeed::Read(int64_t first_sample) {
  Batch batch{.micro_batches = micro_batches_};
  const int64_t seq = shape_.seq_length;
  for (int64_t j = 0; j < shape_.micro_batches; ++j) {
    int32_t* tokens = tokens_[j].view().ptr<int32_t>();
    int32_t* labels = labels_[j].view().ptr<int32_t>();
    for (int64_t b = 0; b < shape_.micro_batch_size; ++b, tokens += seq, labels += seq) {
      const int64_t row =
          datasets::GlobalRow(j, shape_.dp_rank, b, shape_.dp_size, shape_.micro_batch_size);
      if (row >= shape_.global_batch_size) {
        std::fill_n(tokens, seq, 0);
        std::fill_n(labels, seq, kernels::kIgnoredLabel);
        continue;
      }
      MEGA_RETURN_IF_ERROR(source_.Read(first_sample + row, sample_));
      std::copy_n(sample_.begin(), seq, tokens);
      std::copy_n(sample_.begin() + 1, seq, labels);
      batch.unmasked_tokens += seq;
    }
  }
  return batch;
}

}  // namespace mega::engine
