#include "worker/engine/main/batch_feed.h"

namespace mega::engine {

BatchFeed::BatchFeed(const datasets::SampleSource& source, const datasets::BatchShape& shape,
                     int64_t dp_rank, Pool& pool)
    : source_(source), shape_(shape), dp_rank_(dp_rank) {
  const Shape rows{shape.micro_batch_size, source.seq_length()};
  for (int64_t i = 0; i < shape.MicroBatches(); ++i) {
    Tensor tokens = pool.Allocate(DType::kI32, rows, Purpose::kWorkspace);
    Tensor labels = pool.Allocate(DType::kI32, rows, Purpose::kWorkspace);
    micro_batches_.push_back({tokens.view(), labels.view()});
    tensors_.push_back(std::move(tokens));
    tensors_.push_back(std::move(labels));
  }
}

absl::StatusOr<std::span<const transformer::MicroBatch>> BatchFeed::Read(int64_t step) {
  for (size_t i = 0; i < micro_batches_.size(); ++i) {
    const transformer::MicroBatch& batch = micro_batches_[i];
    MEGA_RETURN_IF_ERROR(datasets::FillMicroBatch(source_, shape_, step, static_cast<int64_t>(i),
                                                  dp_rank_, batch.tokens_BS.flat<int32_t>(),
                                                  batch.labels_BS.flat<int32_t>())
                             .status());
  }
  return std::span<const transformer::MicroBatch>(micro_batches_);
}

}  // namespace mega::engine
