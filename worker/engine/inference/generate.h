// Continues a batch of prompts, token by token, with a key/value cache.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/status.h"
#include "worker/engine/inference/sampling.h"
#include "worker/engine/models/decoder.h"
#include "worker/engine/tensor/pool.h"

namespace mega::inference {

struct GenerateOptions {
  int64_t max_new_tokens = 64;
  SamplingOptions sampling;
  std::vector<int32_t> stop_tokens;  // end a sequence and are not part of it
  // Called for every new token as it comes; may be empty.
  std::function<void(size_t sequence, int32_t token)> on_token;
};

// The new tokens of each prompt. Prompts must not be empty; a sequence ends at
// max_position_embeddings. INVALID_ARGUMENT names the prompt and what does not fit;
// RESOURCE_EXHAUSTED: the device cannot hold so many tokens.
absl::StatusOr<std::vector<std::vector<int32_t>>> Generate(
    models::Decoder& model, Pool& pool, Stream& stream,
    std::span<const std::vector<int32_t>> prompts, const GenerateOptions& options);

}  // namespace mega::inference
