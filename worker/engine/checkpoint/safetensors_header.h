// Inside of safetensors.h: the header alone, pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "worker/engine/checkpoint/safetensors.h"

namespace mega::checkpoint {

// A header that was checked: tensors follow each other from byte 0 to the last.
struct SafetensorsContents {
  struct Entry {
    kernels::DType dtype = kernels::DType::kF32;
    kernels::Shape shape;
    int64_t begin = 0, end = 0;  // bytes, counted from the end of the header
  };
  std::map<std::string, Entry, std::less<>> entries;
  std::vector<std::string> names;  // in the order of their bytes
  std::map<std::string, std::string, std::less<>> metadata;
};

// DATA_LOSS names the tensor and what is wrong with it.
absl::StatusOr<SafetensorsContents> ReadHeader(std::string_view header, int64_t data_bytes);

// INVALID_ARGUMENT when the count overflows.
absl::StatusOr<int64_t> TensorBytes(kernels::DType dtype, const kernels::Shape& shape);

}  // namespace mega::checkpoint
