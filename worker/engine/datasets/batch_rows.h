// Which sample stands in which row of which micro-batch: the rule that makes the data of a step the
// same for every number of replicas.
#pragma once

#include <cstdint>
#include <optional>

namespace mega::datasets {

// gbs samples a step, dealt in blocks of one micro-batch for every replica. The last blocks may
// lack samples: their rows are absent (tokens 0, every label masked).
struct BatchShape {
  int64_t global_batch_size = 1;
  int64_t micro_batch_size = 1;
  int64_t data_parallel_size = 1;

  int64_t MicroBatches() const {
    const int64_t block = micro_batch_size * data_parallel_size;
    return (global_batch_size + block - 1) / block;
  }

  // Row of the global batch in row `row` of micro-batch `micro_batch` of replica `dp_rank`.
  std::optional<int64_t> RowOf(int64_t micro_batch, int64_t dp_rank, int64_t row) const {
    const int64_t global = (micro_batch * data_parallel_size + dp_rank) * micro_batch_size + row;
    if (global >= global_batch_size) return std::nullopt;
    return global;
  }

  // Steps count from 1; so the samples consumed after step s are s · gbs.
  int64_t SampleOf(int64_t step, int64_t global_row) const {
    return (step - 1) * global_batch_size + global_row;
  }
};

}  // namespace mega::datasets
