// From logits to the next token. The filters run in the order of Hugging Face's processors:
// repetition penalty, temperature, top-k, top-p, min-p. Their off values are the defaults.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mega::inference {

struct SamplingOptions {
  double temperature = 0;         // 0: greedy, the filters below do not matter
  int64_t top_k = 0;              // 0: all
  double top_p = 1;               // the smallest set of likeliest tokens whose sum reaches it
  double min_p = 0;               // share of the likeliest token's probability
  double repetition_penalty = 1;  // > 1 makes tokens seen before less likely
  uint64_t seed = 0;
};

// Probabilities of the next token, in double. `previous` are the ids so far (prompt included).
// With temperature 0 they are those of temperature 1.
std::vector<double> Probabilities(std::span<const float> logits, std::span<const int32_t> previous,
                                  const SamplingOptions& options);

// The next token. Draws by Philox from (seed, sequence, position) alone: the same text whatever
// else is in the batch. Greedy takes the lowest id among equals.
int32_t Sample(std::span<const float> logits, std::span<const int32_t> previous,
               const SamplingOptions& options, uint64_t sequence, uint64_t position);

}  // namespace mega::inference
