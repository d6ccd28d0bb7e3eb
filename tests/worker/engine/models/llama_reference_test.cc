// The numbers of a Hugging Face Llama (tests/data/models/README.md says how they were made and
// where the tolerances come from).
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/engine/harness/reference.h"
#include "tests/worker/engine/harness/tiny.h"
#include "worker/engine/inference/contiguous_cache.h"
#include "worker/engine/inference/generate.h"
#include "worker/engine/models/hf_names.h"

namespace mega::models {
namespace {

using testing::Batch;
using testing::Reference;
using testing::Rel;

constexpr double kLossTolerance = 2e-6, kLogitsTolerance = 1e-5, kGradTolerance = 2e-5;

class Llama : public ::testing::TestWithParam<bool> {
 protected:
  Llama() : tiny_(Spec()) {
    MEGA_CHECK_OK(LoadHf(tiny_.model.spec(), weights_.source(), tiny_.model.parameters()));
  }
  static planner::ModelSpec Spec() {
    planner::ModelSpec spec = testing::SpecOf("models/llama/config.json");
    spec.reference_attention = GetParam();
    return spec;
  }
  Batch InputsWith(const std::string& labels) {
    const kernels::Shape shape = io_.ShapeOf("input_ids");
    return Batch(tiny_.pool, shape[0], shape[1], io_.Values<int32_t>("input_ids"),
                 io_.Values<int32_t>(labels));
  }

  Reference weights_{"models/llama/model.safetensors"};
  Reference io_{"models/llama/io.safetensors"};
  Reference grads_{"models/llama/grads.safetensors"};
  testing::TinyModel tiny_;
};

TEST_P(Llama, LossAndEveryGradient) {
  const Batch batch = InputsWith("labels");
  const int64_t tokens = batch.view().labels_BS.elements();
  tiny_.model.set_loss_scale(1.0f / tokens);
  const transformer::Loss loss = tiny_.Run({{batch.view()}});
  const double expected = io_.Values<double>("loss_f64")[0];
  EXPECT_NEAR(loss.sum / tokens, expected, kLossTolerance * expected);

  size_t compared = 0;
  for (const HfTensor& tensor : HfTensors(tiny_.model.spec())) {
    const std::vector<float> ours = ExportHf(tensor, tiny_.model.Find(tensor.ours)->main_grad);
    EXPECT_LT(Rel(ours, grads_.Values<float>(tensor.name)), kGradTolerance) << tensor.name;
    ++compared;
  }
  EXPECT_EQ(compared, grads_.names().size());
}

TEST_P(Llama, MaskedLabelsLeaveTheMean) {
  const Batch batch = InputsWith("labels_masked");
  tiny_.model.BeginStep({.forward_only = true});
  tiny_.model.Forward(0, batch.view(), {});
  const transformer::Loss loss = tiny_.model.TakeLoss();
  const double expected = io_.Values<float>("loss_masked")[0];
  EXPECT_LT(loss.tokens, batch.view().labels_BS.elements());
  EXPECT_NEAR(loss.sum / loss.tokens, expected, kLossTolerance * expected);
}

TEST_P(Llama, LogitsOfEveryPosition) {
  const Batch batch = InputsWith("labels");
  const kernels::Shape shape = io_.ShapeOf("input_ids");
  auto cache =
      *inference::ContiguousCache::Make(tiny_.model.spec(), shape[0], shape[1], tiny_.pool);
  const std::vector<int64_t> lengths(shape[0], shape[1]);
  const Tensor logits =
      tiny_.model.Infer(batch.view().tokens_BS.View({shape.elements()}), lengths, cache,
                        /*all_positions=*/true);
  EXPECT_LT(Rel(logits.view().flat<const float>(), io_.Values<float>("logits")), kLogitsTolerance);
}

// The first stages of a cut model give the hidden states between its layers.
TEST_P(Llama, HiddenStatesAfterEachLayer) {
  const planner::ModelSpec& spec = tiny_.model.spec();
  const Batch batch = InputsWith("labels");
  const std::vector<float> expected = io_.Values<float>("hidden_states");
  const size_t size = expected.size() / (spec.num_layers + 1);
  for (int64_t layers = 0; layers < spec.num_layers; ++layers) {  // the last one is after the norm
    testing::TinyModel stage(spec, 1, {.num_layers = layers, .has_loss = false});
    ASSERT_TRUE(LoadHf(spec, weights_.source(), stage.model.parameters()).ok());
    stage.model.BeginStep({.forward_only = true});
    const Tensor hidden = stage.model.Forward(0, batch.view(), {});
    EXPECT_LT(
        Rel(hidden.view().flat<const float>(), std::span(expected).subspan(layers * size, size)),
        kLogitsTolerance)
        << "after " << layers << " layers";
  }
}

TEST_P(Llama, GreedyTokens) {
  const kernels::Shape prompt_shape = io_.ShapeOf("greedy_prompt");
  const kernels::Shape text_shape = io_.ShapeOf("greedy_ids");
  const std::vector<int32_t> ids = io_.Values<int32_t>("greedy_prompt");
  const std::vector<int32_t> expected = io_.Values<int32_t>("greedy_ids");
  std::vector<std::vector<int32_t>> prompts;
  for (int64_t b = 0; b < prompt_shape[0]; ++b)
    prompts.emplace_back(ids.begin() + b * prompt_shape[1],
                         ids.begin() + (b + 1) * prompt_shape[1]);
  const auto texts = inference::Generate(tiny_.model, tiny_.pool, tiny_.stream, prompts,
                                         {.max_new_tokens = text_shape[1]});
  ASSERT_TRUE(texts.ok()) << texts.status();
  std::vector<int32_t> flat;
  for (const auto& text : *texts) flat.insert(flat.end(), text.begin(), text.end());
  EXPECT_EQ(flat, expected);
}

INSTANTIATE_TEST_SUITE_P(Attention, Llama, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "reference" : "flash"; });

}  // namespace
}  // namespace mega::models
