#include "worker/engine/main/batch_feed.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/cross_entropy.h"
#include "kernels/elementwise.h"
#include "worker/engine/datasets/batch_rows.h"

namespace mega::engine {

BatchFeed::BatchFeed(const BatchShape& shape, Stream& stream) : shape_(shape), stream_(&stream) {}

absl::StatusOr<BatchFeed> BatchFeed::Make(const BatchShape& shape, Pool& pool, Stream& stream) {
  BatchFeed feed(shape, stream);
  const int64_t micro_batches =
      datasets::MicroBatchesPerStep(shape.global_batch_size, shape.micro_batch_size, shape.dp_size);
  const Shape rows{shape.micro_batch_size, shape.seq_length};
  for (int64_t i = 0; i < micro_batches; ++i) {
    MEGA_ASSIGN_OR_RETURN(Tensor tokens, pool.TryAllocate(DType::kI32, rows, Purpose::kWorkspace));
    MEGA_ASSIGN_OR_RETURN(Tensor labels, pool.TryAllocate(DType::kI32, rows, Purpose::kWorkspace));
    feed.micro_batches_.push_back({tokens.view(), labels.view()});
    feed.tensors_.push_back(std::move(tokens));
    feed.tensors_.push_back(std::move(labels));
  }
  // The host's rows are smaller than what has just been found to fit.
  feed.sample_.resize(shape.seq_length + 1);
  feed.tokens_.resize(rows.elements());
  feed.labels_.resize(rows.elements());
  return feed;
}

absl::Status BatchFeed::FillRow(const datasets::SampleSource& source, int64_t first_sample,
                                int64_t global_row, int64_t row) {
  const int64_t seq = shape_.seq_length;
  int32_t* tokens = tokens_.data() + row * seq;
  int32_t* labels = labels_.data() + row * seq;
  if (global_row >= shape_.global_batch_size) {
    std::fill_n(tokens, seq, 0);
    std::fill_n(labels, seq, kernels::kIgnoredLabel);
    return absl::OkStatus();
  }
  MEGA_RETURN_IF_ERROR(source.Read(first_sample + global_row, sample_));
  std::copy_n(sample_.begin(), seq, tokens);
  std::copy_n(sample_.begin() + 1, seq, labels);
  return absl::OkStatus();
}

absl::StatusOr<std::span<const transformer::MicroBatch>> BatchFeed::Read(
    const datasets::SampleSource& source, int64_t first_sample) {
  MEGA_CHECK_EQ(source.seq_length(), shape_.seq_length);
  for (size_t j = 0; j < micro_batches_.size(); ++j) {
    for (int64_t row = 0; row < shape_.micro_batch_size; ++row) {
      const int64_t global_row = datasets::GlobalRow(static_cast<int64_t>(j), shape_.dp_rank, row,
                                                     shape_.dp_size, shape_.micro_batch_size);
      MEGA_RETURN_IF_ERROR(FillRow(source, first_sample, global_row, row));
    }
    const Shape rows = micro_batches_[j].tokens_BS.shape();
    kernels::Copy(*stream_, TensorView(tokens_.data(), DType::kI32, rows),
                  micro_batches_[j].tokens_BS);
    kernels::Copy(*stream_, TensorView(labels_.data(), DType::kI32, rows),
                  micro_batches_[j].labels_BS);
    stream_->Synchronize();  // the host rows are filled again at once
  }
  return std::span<const transformer::MicroBatch>(micro_batches_);
}

}  // namespace mega::engine
