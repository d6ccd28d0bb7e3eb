// The rows of one micro-batch as the engine takes them.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "worker/engine/datasets/batch_rows.h"
#include "worker/engine/datasets/sample_source.h"

namespace mega::datasets {

inline constexpr int32_t kMaskedLabel = -100;

// Fills micro_batch_size × seq_length inputs and labels (label t is token t + 1) of micro-batch
// `micro_batch` of replica `dp_rank` in `step` (from 1). Rows that hold no sample get tokens 0 and
// masked labels. Returns the number of labels that count.
absl::StatusOr<int64_t> FillMicroBatch(const SampleSource& source, const BatchShape& shape,
                                       int64_t step, int64_t micro_batch, int64_t dp_rank,
                                       std::span<int32_t> tokens_BT, std::span<int32_t> labels_BT);

}  // namespace mega::datasets
