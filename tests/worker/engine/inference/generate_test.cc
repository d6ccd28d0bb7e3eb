#include "worker/engine/inference/generate.h"

#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/engine/harness/reference.h"
#include "tests/worker/engine/harness/tiny.h"
#include "worker/engine/inference/contiguous_cache.h"

// A sanitizer ends the process at a size that malloc declines, unless it is told not to.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }

namespace mega::inference {
namespace {

using ::testing::HasSubstr;
using testing::TinyModel;
using testing::TinySpec;

using Prompts = std::vector<std::vector<int32_t>>;

std::vector<float> LastLogits(TinyModel& tiny, const std::vector<int32_t>& tokens) {
  ContiguousCache cache =
      *ContiguousCache::Make(TinySpec(), 1, static_cast<int64_t>(tokens.size()), tiny.pool);
  const testing::Batch batch(tiny.pool, 1, tokens.size(), tokens, tokens);
  const std::vector<int64_t> lengths = {static_cast<int64_t>(tokens.size())};
  const Tensor logits = tiny.model.Infer(batch.view().tokens_BS.View({lengths[0]}), lengths, cache);
  const auto values = logits.view().flat<const float>();
  return {values.begin(), values.end()};
}

TEST(Generate, CachedLogitsEqualUncachedAtEachStep) {
  TinyModel tiny;
  const std::vector<int32_t> tokens = {5, 17, 80, 3, 3, 41, 9, 66};
  ContiguousCache cache = *ContiguousCache::Make(TinySpec(), 1, 8, tiny.pool);
  for (size_t t = 0; t < tokens.size(); ++t) {
    const testing::Batch one(tiny.pool, 1, 1, {{tokens[t]}}, {{0}});
    const std::vector<int64_t> lengths = {1};
    const Tensor logits = tiny.model.Infer(one.view().tokens_BS.View({1}), lengths, cache);
    EXPECT_EQ(cache.length(0), static_cast<int64_t>(t) + 1);
    EXPECT_LT(testing::Rel(logits.view().flat<const float>(),
                           LastLogits(tiny, {tokens.begin(), tokens.begin() + t + 1})),
              1e-5)
        << t;
  }
}

TEST(Generate, ASequenceDoesNotDependOnItsNeighbours) {
  TinyModel tiny;
  const Prompts prompts = {{1, 2, 3}, {70}, {9, 8, 7, 6, 5}};
  const GenerateOptions options{.max_new_tokens = 6};
  const auto together = Generate(tiny.model, tiny.pool, tiny.stream, prompts, options);
  ASSERT_TRUE(together.ok()) << together.status();
  for (size_t i = 0; i < prompts.size(); ++i) {
    const auto alone =
        Generate(tiny.model, tiny.pool, tiny.stream, std::span(prompts).subspan(i, 1), options);
    EXPECT_EQ((*together)[i], (*alone)[0]) << i;
    EXPECT_EQ((*together)[i].size(), 6u);
  }
}

TEST(Generate, TheSameSeedWritesTheSameText) {
  TinyModel tiny;
  const Prompts prompts = {{1, 2, 3}, {1, 2, 3}};
  const auto run = [&](uint64_t seed) {
    return *Generate(tiny.model, tiny.pool, tiny.stream, prompts,
                     {.max_new_tokens = 12, .sampling = {.temperature = 1, .seed = seed}});
  };
  EXPECT_EQ(run(4), run(4));
  EXPECT_NE(run(4), run(5));
  EXPECT_NE(run(4)[0], run(4)[1]);  // two sequences of one prompt
}

TEST(Generate, StopsAtTheStopTokenTheLimitAndTheLastPosition) {
  TinyModel tiny;
  const Prompts prompts = {{1, 2, 3}};
  const auto free_run =
      *Generate(tiny.model, tiny.pool, tiny.stream, prompts, {.max_new_tokens = 100});
  // 16 positions: 3 of the prompt, 13 inputs more, and the token that follows the last.
  EXPECT_EQ(free_run[0].size(), 14u);
  std::vector<int32_t> seen;
  const auto stopped =
      *Generate(tiny.model, tiny.pool, tiny.stream, prompts,
                {.max_new_tokens = 100,
                 .stop_tokens = {free_run[0][4]},
                 .on_token = [&](size_t, int32_t token) { seen.push_back(token); }});
  EXPECT_LE(stopped[0].size(), 4u);
  EXPECT_EQ(stopped[0], seen);
  EXPECT_EQ(Generate(tiny.model, tiny.pool, tiny.stream, prompts, {.max_new_tokens = 0})->at(0),
            std::vector<int32_t>{});
  EXPECT_EQ(tiny.pool.UsageOf(Purpose::kActivations).bytes, 0);
}

// Both sizes come from outside: a person's, and a config.json's.
TEST(Generate, ALengthThatNoMemoryHoldsIsAnError) {
  planner::ModelSpec spec = TinySpec();
  spec.max_position_embeddings = int64_t{1} << 45;
  TinyModel tiny(spec);
  const Prompts prompts = {{1, 2, 3}};
  for (const int64_t tokens : {int64_t{1} << 44, std::numeric_limits<int64_t>::max()}) {
    const absl::Status status =
        Generate(tiny.model, tiny.pool, tiny.stream, prompts, {.max_new_tokens = tokens}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_THAT(status.message(), HasSubstr("lower max_new_tokens"));
  }
}

TEST(Generate, BadPromptsAreNamed) {
  TinyModel tiny;
  const auto error = [&](std::vector<int32_t> prompt) {
    const Prompts prompts = {{1}, std::move(prompt)};
    return std::string(
        Generate(tiny.model, tiny.pool, tiny.stream, prompts, {}).status().message());
  };
  EXPECT_THAT(error({}), HasSubstr("prompt 1 is empty"));
  EXPECT_THAT(error({96}), HasSubstr("prompt 1 holds token 96 but model.vocab_size is 96"));
  EXPECT_THAT(error({-1}), HasSubstr("token -1"));
  EXPECT_THAT(error(std::vector<int32_t>(17, 1)), HasSubstr("prompt 1 has 17 tokens"));
}

}  // namespace
}  // namespace mega::inference
