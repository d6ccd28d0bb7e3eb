// model.safetensors.index.json: which shard holds which tensor.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/status.h"

namespace mega::checkpoint {

inline constexpr int64_t kMaxIndexBytes = 8 << 20;  // 50,000 tensors have 5 MiB

// Tensor → file of a weight_map. Read in one pass, so memory follows the names alone.
// INVALID_ARGUMENT names `path` and the tensor: not JSON, no weight_map, a tensor twice, a file
// that is no plain name.
absl::StatusOr<std::map<std::string, std::string>> ParseHfIndex(std::string_view text,
                                                                const std::string& path);

}  // namespace mega::checkpoint
