// Each block's backward against the slope of its forward along random directions. In f32
// differences over a step of 3e-3 are good to a few 1e-4; the tolerance is 3e-3 of the slope's own
// scale.
#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/elementwise.h"
#include "tests/worker/engine/harness/tiny.h"
#include "worker/engine/transformer/attention.h"
#include "worker/engine/transformer/embedding.h"
#include "worker/engine/transformer/loss.h"
#include "worker/engine/transformer/mlp.h"

namespace mega::transformer {
namespace {

using distributed::Parameter;

constexpr int64_t kRows = 2, kPositions = 7;  // B, S
constexpr double kStep = 3e-3;

class Blocks : public ::testing::Test {
 protected:
  Blocks() {
    for (const planner::ParameterInfo& info : planner::Parameters(spec_)) {
      auto parameter = std::make_unique<Parameter>();
      parameter->info = info;
      values_.push_back(Random(Shape(info.sharding.global_shape), 0.4));
      if (info.init == planner::ParameterInfo::Init::kOnes)
        for (float& gain : values_.back().view().flat<float>()) gain += 1;
      grads_.push_back(pool_.Zeros(DType::kF32, values_.back().shape(), Purpose::kGrads));
      parameter->value = values_.back().view();
      parameter->main_grad = grads_.back().view();
      parameters_.push_back(std::move(parameter));
    }
  }

  Tensor Random(const Shape& shape, float std) {
    Tensor tensor = pool_.Allocate(DType::kF32, shape, Purpose::kWorkspace);
    std::normal_distribution<float> normal(0, std);
    for (float& value : tensor.view().flat<float>()) value = normal(random_);
    return tensor;
  }
  Tensor Clone(TensorView from) {
    Tensor copy = pool_.Allocate(DType::kF32, from.shape(), Purpose::kWorkspace);
    kernels::Copy(stream_, from, copy);
    return copy;
  }
  Parameter* P(const std::string& name) {
    for (auto& parameter : parameters_)
      if (parameter->info.name == name) return parameter.get();
    ADD_FAILURE() << name;
    return nullptr;
  }
  static double Dot(TensorView a, TensorView b) {
    double sum = 0;
    for (int64_t i = 0; i < a.elements(); ++i)
      sum += static_cast<double>(a.ptr<float>()[i]) * b.ptr<float>()[i];
    return sum;
  }

  // Along a random direction: the slope of `f` as the values of `x` move, and what `dx` predicts.
  void ExpectSlope(const std::function<double()>& f, TensorView x, TensorView dx,
                   const std::string& what) {
    for (int trial = 0; trial < 3; ++trial) {
      const Tensor direction = Random(x.shape(), 1);
      const Tensor saved = Clone(x);
      const auto at = [&](double step) {
        for (int64_t i = 0; i < x.elements(); ++i)
          x.ptr<float>()[i] = static_cast<float>(saved.view().ptr<float>()[i] +
                                                 step * direction.view().ptr<float>()[i]);
        return f();
      };
      // Fourth order: the softmax is steep, and a plain central difference would be off by
      // percents.
      const double slope =
          (8 * (at(kStep) - at(-kStep)) - (at(2 * kStep) - at(-2 * kStep))) / (12 * kStep);
      kernels::Copy(stream_, saved, x);
      const double scale = std::sqrt(Dot(dx, dx)) + 1e-3;
      EXPECT_NEAR(Dot(dx, direction), slope, 3e-3 * scale) << what << ", trial " << trial;
      EXPECT_GT(scale, 1e-2) << what << " has no gradient: the check would be empty";
    }
  }

  planner::ModelSpec spec_ = testing::TinySpec();
  Stream stream_{Device{}, 1};
  Pool pool_{Device{}};
  Context context_{.pool = pool_, .stream = stream_};
  std::mt19937 random_{3};
  std::vector<Tensor> values_, grads_;
  std::vector<std::unique_ptr<Parameter>> parameters_;
};

TEST_F(Blocks, AttentionGradientsAreTheSlopes) {
  for (const bool reference : {false, true}) {
    spec_.reference_attention = reference;
    for (Tensor& grad : grads_) kernels::Fill(stream_, grad, 0);
    RopeTable rope(context_, spec_);
    Attention block(context_, spec_, rope,
                    {.norm_D = P("layers.0.attention_norm.weight"),
                     .qkv_CD = P("layers.0.attention.qkv.weight"),
                     .out_DNH = P("layers.0.attention.out.weight")});
    const Shape shape({kRows * kPositions, spec_.hidden_size});
    const Tensor x = Random(shape, 1), dy = Random(shape, 1);
    const auto f = [&] {
      context_.forward_only = true;
      return Dot(block.Forward(0, kRows, Clone(x)), dy);
    };
    context_.forward_only = false;
    block.Forward(0, kRows, Clone(x));
    const Tensor dx = block.BackwardInput(0, Clone(dy));
    block.BackwardWeight(0);
    ExpectSlope(f, x, dx, "x");
    for (Parameter* parameter : block.parameters())
      ExpectSlope(f, parameter->value, parameter->main_grad, parameter->info.name);
  }
}

TEST_F(Blocks, MlpGradientsAreTheSlopes) {
  Mlp block(context_, spec_,
            {.norm_D = P("layers.0.mlp_norm.weight"),
             .gate_up_2FD = P("layers.0.mlp.gate_up.weight"),
             .down_DF = P("layers.0.mlp.down.weight")});
  const Shape shape({kRows * kPositions, spec_.hidden_size});
  const Tensor x = Random(shape, 1), dy = Random(shape, 1);
  const auto f = [&] {
    context_.forward_only = true;
    return Dot(block.Forward(0, Clone(x)), dy);
  };
  block.Forward(0, Clone(x));
  const Tensor dx = block.BackwardInput(0, Clone(dy));
  block.BackwardWeight(0);
  ExpectSlope(f, x, dx, "x");
  for (Parameter* parameter : block.parameters())
    ExpectSlope(f, parameter->value, parameter->main_grad, parameter->info.name);
}

TEST_F(Blocks, LossGradientsAreTheSlopesAndMaskedTokensHaveNone) {
  LossHead head(context_, spec_, P("final_norm.weight"), P("head.weight"));
  testing::Batch batch = testing::Batch::Random(pool_, kRows, kPositions, spec_.vocab_size, 5);
  batch.labels()[0] = batch.labels()[9] = -100;
  constexpr float kScale = 0.25f;
  const Tensor x = Random({kRows * kPositions, spec_.hidden_size}, 1);
  const auto f = [&] {
    context_.forward_only = true;
    return kScale * head.Forward(0, batch.view().labels_BS, Clone(x), kScale).sum;
  };
  EXPECT_EQ(head.Forward(0, batch.view().labels_BS, Clone(x), kScale).tokens,
            kRows * kPositions - 2);
  const Tensor dx = head.BackwardInput(0);
  head.BackwardWeight(0);
  for (const int64_t masked : {0, 9})
    for (const float value : dx.view().Rows(masked, 1).flat<float>()) EXPECT_EQ(value, 0);
  ExpectSlope(f, x, dx, "x");
  ExpectSlope(f, P("final_norm.weight")->value, P("final_norm.weight")->main_grad, "norm");
  ExpectSlope(f, P("head.weight")->value, P("head.weight")->main_grad, "head");
}

TEST_F(Blocks, EmbeddingGradientAddsUpOverRepeatedTokens) {
  Embedding embedding(context_, P("embedding.weight"));
  const std::vector<int32_t> tokens = {3, 5, 3, 95};
  const testing::Batch batch(pool_, 2, 2, tokens, tokens);
  embedding.Forward(0, batch.view().tokens_BS);
  Tensor dx = Random({4, spec_.hidden_size}, 1);
  const Tensor kept = Clone(dx);
  embedding.BackwardInput(0, std::move(dx));
  embedding.BackwardWeight(0);
  const auto grad = P("embedding.weight")->main_grad.As<float, 2>();
  const auto expected = kept.view().As<float, 2>();
  for (int64_t d = 0; d < spec_.hidden_size; ++d) {
    EXPECT_FLOAT_EQ(grad(3, d), expected(0, d) + expected(2, d));
    EXPECT_FLOAT_EQ(grad(95, d), expected(3, d));
    EXPECT_EQ(grad(0, d), 0);
  }
}

// The limit on memory for large vocabularies: the chunk, not the batch, decides.
TEST_F(Blocks, LogitsAreNeverInMemoryAtOnce) {
  planner::ModelSpec spec = spec_;
  spec.vocab_size = 50304;
  const int64_t tokens = 1024;
  Parameter norm, head;
  const Tensor norm_value = Random({spec.hidden_size}, 1);
  const Tensor head_value = Random({spec.vocab_size, spec.hidden_size}, 0.02);
  const Tensor norm_grad = pool_.Zeros(DType::kF32, norm_value.shape(), Purpose::kGrads);
  const Tensor head_grad = pool_.Zeros(DType::kF32, head_value.shape(), Purpose::kGrads);
  norm.value = norm_value.view(), norm.main_grad = norm_grad.view();
  head.value = head_value.view(), head.main_grad = head_grad.view();
  LossHead loss_head(context_, spec, &norm, &head);
  const testing::Batch batch = testing::Batch::Random(pool_, 1, tokens, spec.vocab_size, 1);

  const int64_t before = pool_.Total().bytes;
  loss_head.Forward(0, batch.view().labels_BS, Random({tokens, spec.hidden_size}, 1), 1);
  loss_head.Clear();
  const int64_t chunk_bytes = LossHead::ChunkRows(spec.vocab_size) * spec.vocab_size * 4;
  const int64_t hidden_bytes = tokens * spec.hidden_size * 4;
  EXPECT_LT(pool_.Total().peak_bytes - before, chunk_bytes + 8 * hidden_bytes);
  EXPECT_LT(chunk_bytes * 4, tokens * spec.vocab_size * 4);
}

}  // namespace
}  // namespace mega::transformer
