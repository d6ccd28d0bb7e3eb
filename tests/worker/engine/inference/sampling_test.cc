#include "worker/engine/inference/sampling.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/engine/harness/reference.h"

namespace mega::inference {
namespace {

SamplingOptions OptionsOf(const nlohmann::json& params) {
  SamplingOptions options{.temperature = 1};
  for (const auto& [key, value] : params.items()) {
    if (key == "temperature")
      options.temperature = value;
    else if (key == "top_k")
      options.top_k = value;
    else if (key == "top_p")
      options.top_p = value;
    else if (key == "min_p")
      options.min_p = value;
    else if (key == "repetition_penalty")
      options.repetition_penalty = value;
    else
      ADD_FAILURE() << "unknown parameter " << key;
  }
  return options;
}

TEST(Sampling, ProbabilitiesEqualTheStoredOnes) {
  const nlohmann::json file = testing::ReadJson("ops/sampling.json");
  for (const auto& item : file.at("cases")) {
    const std::vector<float> logits = item.at("logits");
    const std::vector<int32_t> previous = item.at("prev_ids");
    const std::vector<double> expected = item.at("probs");
    const std::vector<double> p = Probabilities(logits, previous, OptionsOf(item.at("params")));
    int kept = 0;
    for (size_t i = 0; i < p.size(); ++i) {
      EXPECT_NEAR(p[i], expected[i], 1e-9) << item.at("params") << " token " << i;
      kept += p[i] > 0;
    }
    EXPECT_EQ(kept, item.at("kept")) << item.at("params");
  }
  EXPECT_GE(file.at("cases").size(), 24u);
}

TEST(Sampling, GreedyTakesTheFirstOfTheBest) {
  const std::vector<float> logits = {1, 3, 3, 2};
  EXPECT_EQ(Sample(logits, {}, {}, 0, 0), 1);
}

TEST(Sampling, DrawsFollowTheProbabilities) {
  const std::vector<float> logits = {0, std::log(2.0f), std::log(5.0f)};
  std::vector<int> counts(3);
  for (uint64_t position = 0; position < 8000; ++position)
    ++counts[Sample(logits, {}, {.temperature = 1, .seed = 11}, 0, position)];
  EXPECT_NEAR(counts[0], 1000, 150);
  EXPECT_NEAR(counts[1], 2000, 200);
  EXPECT_NEAR(counts[2], 5000, 250);
}

TEST(Sampling, ADrawDependsOnSeedSequenceAndPositionAlone) {
  const std::vector<float> logits(50, 0.0f);
  const auto draw = [&](uint64_t seed, uint64_t sequence, uint64_t position) {
    return Sample(logits, {}, {.temperature = 1, .seed = seed}, sequence, position);
  };
  int differ = 0;
  for (uint64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(draw(1, 2, i), draw(1, 2, i));
    differ += draw(1, 2, i) != draw(1, 3, i);
    differ += draw(1, 2, i) != draw(2, 2, i);
  }
  EXPECT_GT(differ, 30);
}

}  // namespace
}  // namespace mega::inference
