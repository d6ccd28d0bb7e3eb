// A part of a checkpoint of one tensor, "weight", of which each rank holds a row.
#pragma once

#include <cstdint>
#include <string>

#include "mega/v1/checkpoint.pb.h"

namespace mega::core {

// The caller says whose it is: job, attempt and epoch.
inline v1::CheckpointPart RowPart(int64_t step, int64_t rank, int64_t ranks) {
  v1::CheckpointPart part;
  part.set_step(step);
  part.set_rank(rank);
  part.set_directory("/checkpoints/" + std::to_string(step));
  v1::TensorInfo& tensor = *part.add_tensors();
  tensor.set_name("weight");
  tensor.add_global_shape(ranks);
  tensor.add_global_shape(8);
  tensor.set_dtype("F32");
  v1::CheckpointFile& file = *part.add_files();
  file.set_name("rank" + std::to_string(rank));
  file.set_bytes(32);
  v1::TensorSlice& slice = *part.add_slices();
  slice.set_tensor("weight");
  slice.set_file(file.name());
  slice.add_offset(rank);
  slice.add_offset(0);
  slice.add_shape(1);
  slice.add_shape(8);
  part.mutable_state()->set_step(step);
  return part;
}

}  // namespace mega::core
