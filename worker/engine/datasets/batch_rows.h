// Which sample stands in which row of which micro-batch: the rule that makes the data of a step the
// same for every number of replicas. gbs samples a step are dealt in blocks of one micro-batch for
// every replica; rows past gbs are absent (tokens 0, every label masked). Where a step's
// samples begin is the trainer state's consumed_samples: gbs may change between two runs.
#pragma once

#include <cstdint>

namespace mega::datasets {

// Micro-batches every replica runs in a step.
constexpr int64_t MicroBatchesPerStep(int64_t global_batch_size, int64_t micro_batch_size,
                                      int64_t dp_size) {
  const int64_t block = micro_batch_size * dp_size;
  return global_batch_size / block + (global_batch_size % block != 0);
}

// Row of the global batch in row `row` of micro-batch `micro_batch` of replica `dp_rank`; absent
// when it is global_batch_size or more.
constexpr int64_t GlobalRow(int64_t micro_batch, int64_t dp_rank, int64_t row, int64_t dp_size,
                            int64_t micro_batch_size) {
  return (micro_batch * dp_size + dp_rank) * micro_batch_size + row;
}

}  // namespace mega::datasets
