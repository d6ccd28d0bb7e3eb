#include "worker/engine/datasets/micro_batch.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace mega::datasets {

absl::StatusOr<int64_t> FillMicroBatch(const SampleSource& source, const BatchShape& shape,
                                       int64_t step, int64_t micro_batch, int64_t dp_rank,
                                       std::span<int32_t> tokens_BT, std::span<int32_t> labels_BT) {
  const auto length = static_cast<size_t>(source.seq_length());
  MEGA_CHECK_EQ(tokens_BT.size(), static_cast<size_t>(shape.micro_batch_size) * length);
  MEGA_CHECK_EQ(labels_BT.size(), tokens_BT.size());
  std::vector<int32_t> sample(length + 1);
  int64_t counted = 0;
  for (int64_t row = 0; row < shape.micro_batch_size; ++row) {
    const size_t at = static_cast<size_t>(row) * length;
    const std::span<int32_t> tokens = tokens_BT.subspan(at, length);
    const std::span<int32_t> labels = labels_BT.subspan(at, length);
    const std::optional<int64_t> global = shape.RowOf(micro_batch, dp_rank, row);
    if (!global.has_value()) {
      std::fill(tokens.begin(), tokens.end(), 0);
      std::fill(labels.begin(), labels.end(), kMaskedLabel);
      continue;
    }
    MEGA_RETURN_IF_ERROR(source.Read(shape.SampleOf(step, *global), sample));
    std::copy(sample.begin(), sample.end() - 1, tokens.begin());
    std::copy(sample.begin() + 1, sample.end(), labels.begin());
    counted += source.seq_length();
  }
  return counted;
}

}  // namespace mega::datasets
