#include "worker/engine/main/batch_feed.h"

#include <algorithm>

#include "kernels/cross_entropy.h"
#include "worker/engine/datasets/batch_rows.h"

namespace mega::engine {

BatchFeed::BatchFeed(const datasets::SampleSource& source, const BatchShape& shape, Pool& pool)
    : source_(source), shape_(shape), sample_(source.seq_length() + 1) {
  const int64_t micro_batches =
      datasets::MicroBatchesPerStep(shape.global_batch_size, shape.micro_batch_size, shape.dp_size);
  const Shape rows{shape.micro_batch_size, source.seq_length()};
  for (int64_t i = 0; i < micro_batches; ++i) {
    Tensor tokens = pool.Allocate(DType::kI32, rows, Purpose::kWorkspace);
    Tensor labels = pool.Allocate(DType::kI32, rows, Purpose::kWorkspace);
    micro_batches_.push_back({tokens.view(), labels.view()});
    tensors_.push_back(std::move(tokens));
    tensors_.push_back(std::move(labels));
  }
}

absl::Status BatchFeed::FillRow(int64_t step, int64_t global_row, int32_t* tokens,
                                int32_t* labels) {
  const int64_t seq = source_.seq_length();
  if (global_row >= shape_.global_batch_size) {
    std::fill_n(tokens, seq, 0);
    std::fill_n(labels, seq, kernels::kIgnoredLabel);
    return absl::OkStatus();
  }
  MEGA_RETURN_IF_ERROR(
      source_.Read(datasets::FirstSample(step, shape_.global_batch_size) + global_row, sample_));
  std::copy_n(sample_.begin(), seq, tokens);
  std::copy_n(sample_.begin() + 1, seq, labels);
  return absl::OkStatus();
}

absl::StatusOr<std::span<const transformer::MicroBatch>> BatchFeed::Read(int64_t step) {
  const int64_t seq = source_.seq_length();
  for (size_t j = 0; j < micro_batches_.size(); ++j) {
    int32_t* tokens = micro_batches_[j].tokens_BS.ptr<int32_t>();
    int32_t* labels = micro_batches_[j].labels_BS.ptr<int32_t>();
    for (int64_t row = 0; row < shape_.micro_batch_size; ++row, tokens += seq, labels += seq) {
      const int64_t global_row = datasets::GlobalRow(static_cast<int64_t>(j), shape_.dp_rank, row,
                                                     shape_.dp_size, shape_.micro_batch_size);
      MEGA_RETURN_IF_ERROR(FillRow(step, global_row, tokens, labels));
    }
  }
  return std::span<const transformer::MicroBatch>(micro_batches_);
}

}  // namespace mega::engine
