#include "worker/engine/inference/generate.h"

#include <algorithm>
#include <utility>

#include "kernels/elementwise.h"
#include "worker/engine/inference/contiguous_cache.h"

namespace mega::inference {
namespace {

absl::Status CheckPrompts(const planner::ModelSpec& spec,
                          std::span<const std::vector<int32_t>> prompts) {
  for (size_t i = 0; i < prompts.size(); ++i) {
    const int64_t length = static_cast<int64_t>(prompts[i].size());
    if (length == 0) return InvalidArgument("prompt {} is empty; give at least one token", i);
    if (length > spec.max_position_embeddings)
      return InvalidArgument(
          "prompt {} has {} tokens but model.max_position_embeddings is {}; shorten it", i, length,
          spec.max_position_embeddings);
    for (const int32_t token : prompts[i])
      if (token < 0 || token >= spec.vocab_size)
        return InvalidArgument("prompt {} holds token {} but model.vocab_size is {}", i, token,
                               spec.vocab_size);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::vector<int32_t>>> Generate(
    models::Decoder& model, Pool& pool, Stream& stream,
    std::span<const std::vector<int32_t>> prompts, const GenerateOptions& options) {
  const planner::ModelSpec& spec = model.spec();
  MEGA_RETURN_IF_ERROR(CheckPrompts(spec, prompts));
  const size_t sequences = prompts.size();
  std::vector<std::vector<int32_t>> texts(prompts.begin(), prompts.end());  // prompt and new tokens
  std::vector<std::vector<int32_t>> results(sequences);
  if (sequences == 0 || options.max_new_tokens <= 0) return results;

  size_t longest = 0;
  for (const auto& prompt : prompts) longest = std::max(longest, prompt.size());
  const int64_t room = spec.max_position_embeddings - static_cast<int64_t>(longest);
  // The last new token is never an input.
  const int64_t capacity =
      static_cast<int64_t>(longest) + std::min(room, options.max_new_tokens - 1);
  MEGA_ASSIGN_OR_RETURN(
      ContiguousCache cache,
      ContiguousCache::Make(spec, static_cast<int64_t>(sequences), capacity, pool));

  // What each sequence feeds into the next pass: its prompt, then one token at a time.
  std::vector<int64_t> lengths(sequences);
  for (size_t i = 0; i < sequences; ++i) lengths[i] = static_cast<int64_t>(texts[i].size());
  while (std::any_of(lengths.begin(), lengths.end(), [](int64_t n) { return n > 0; })) {
    std::vector<int32_t> tokens;
    for (size_t i = 0; i < sequences; ++i)
      tokens.insert(tokens.end(), texts[i].end() - lengths[i], texts[i].end());
    Tensor tokens_T = pool.Allocate(DType::kI32, Shape({static_cast<int64_t>(tokens.size())}),
                                    Purpose::kWorkspace);
    kernels::Copy(stream, TensorView(tokens.data(), DType::kI32, tokens_T.shape()), tokens_T);
    const Tensor logits_RV = model.Infer(tokens_T, lengths, cache);
    stream.Synchronize();

    int64_t row = 0;
    for (size_t i = 0; i < sequences; ++i) {
      if (lengths[i] == 0) continue;
      const std::span<const float> logits = logits_RV.view().Rows(row++, 1).flat<const float>();
      const int32_t next = Sample(logits, texts[i], options.sampling, i, texts[i].size());
      lengths[i] = 0;
      if (std::ranges::find(options.stop_tokens, next) != options.stop_tokens.end()) continue;
      texts[i].push_back(next);
      results[i].push_back(next);
      if (options.on_token) options.on_token(i, next);
      const bool full = static_cast<int64_t>(results[i].size()) == options.max_new_tokens ||
                        cache.length(static_cast<int64_t>(i)) >= spec.max_position_embeddings;
      if (!full) lengths[i] = 1;
    }
  }
  return results;
}

}  // namespace mega::inference
