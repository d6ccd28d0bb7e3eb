#include "worker/engine/optimizer/adamw.h"

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/engine/optimizer/grad_clip.h"

namespace mega::optimizer {
namespace {

using distributed::Parameter;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::Optimizer Options() {
  v1::Optimizer options;
  options.set_schedule("constant");
  options.set_lr(0.1);
  options.set_weight_decay(0.5);
  options.set_beta1(0.9);
  options.set_beta2(0.95);
  options.set_eps(1e-8);
  options.set_clip_grad(1);
  return options;
}

class AdamWTest : public ::testing::Test {
 protected:
  Parameter* Add(const std::string& name, std::vector<float> values, std::vector<float> grads,
                 bool weight_decay = true) {
    auto parameter = std::make_unique<Parameter>();
    parameter->info.name = name;
    parameter->info.weight_decay = weight_decay;
    parameter->value = Hold(values);
    parameter->main_grad = Hold(grads);
    parameters_.push_back(parameter.get());
    owned_.push_back(std::move(parameter));
    return parameters_.back();
  }
  TensorView Hold(const std::vector<float>& values) {
    tensors_.push_back(pool_.Allocate(DType::kF32, Shape({static_cast<int64_t>(values.size())}),
                                      Purpose::kWeights));
    std::copy(values.begin(), values.end(), tensors_.back().view().ptr<float>());
    return tensors_.back().view();
  }

  Stream stream_{Device{}, 1};
  Pool pool_{Device{}};
  std::vector<Tensor> tensors_;
  std::vector<std::unique_ptr<Parameter>> owned_;
  std::vector<Parameter*> parameters_;
};

TEST(AdamW, MomentsThatDoNotFitAreAnError) {
  Pool pool{Device{}};
  Stream stream{Device{}, 1};
  Parameter huge;
  huge.value = TensorView(nullptr, DType::kF32, Shape{int64_t{1} << 57});
  Parameter* const parameters[] = {&huge};
  const absl::Status status = AdamW::Make(Options(), 1, parameters, pool, stream).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the moments of AdamW"));
}

TEST_F(AdamWTest, NormSpansAllParametersAndClipsBeforeTheUpdate) {
  Parameter* a = Add("a", {1, 1}, {3, 0});
  Parameter* b = Add("b", {1}, {4});
  absl::StatusOr<AdamW> adamw = AdamW::Make(Options(), 10, parameters_, pool_, stream_);
  ASSERT_TRUE(adamw.ok()) << adamw.status();
  const absl::StatusOr<StepResult> result = adamw->Step(1, 1);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_DOUBLE_EQ(result->grad_norm, 5);
  EXPECT_DOUBLE_EQ(result->lr, 0.1);
  // The first step of Adam is lr·sign(g), after a decay of lr·0.5; the moments hold g·0.2.
  EXPECT_NEAR(a->value.ptr<float>()[0], 1 - 0.05 - 0.1, 1e-6);
  EXPECT_NEAR(a->value.ptr<float>()[1], 1 - 0.05, 1e-6);
  EXPECT_NEAR(b->value.ptr<float>()[0], 1 - 0.05 - 0.1, 1e-6);
  for (const NamedState& state : adamw->states()) {
    const float first = state.value.ptr<float>()[0];
    if (state.name == "optimizer.exp_avg/a") {
      EXPECT_NEAR(first, 0.1 * 3 * 0.2, 1e-6);
    } else if (state.name == "optimizer.exp_avg_sq/b") {
      EXPECT_NEAR(first, 0.05 * 0.64, 1e-6);
    }
  }
}

TEST_F(AdamWTest, DecayOnlyWhereItIsDeclared) {
  Parameter* norm = Add("norm", {1}, {0}, /*weight_decay=*/false);
  Parameter* matrix = Add("matrix", {1}, {0});
  auto adamw = AdamW::Make(Options(), 10, parameters_, pool_, stream_);
  ASSERT_TRUE(adamw->Step(1, 1).ok());
  EXPECT_EQ(norm->value.ptr<float>()[0], 1);
  EXPECT_NEAR(matrix->value.ptr<float>()[0], 0.95, 1e-7);
}

TEST_F(AdamWTest, GradScaleComesBeforeNormAndClip) {
  Add("a", {0}, {500});
  auto adamw = AdamW::Make(Options(), 10, parameters_, pool_, stream_);
  EXPECT_DOUBLE_EQ(adamw->Step(1, 0.01)->grad_norm, 5);
}

TEST_F(AdamWTest, ANonFiniteGradientNamesItsParameterAndChangesNothing) {
  Parameter* good = Add("good", {1}, {1});
  Add("bad", {1}, {std::numeric_limits<float>::quiet_NaN()});
  Add("worse", {1}, {std::numeric_limits<float>::infinity()});
  auto adamw = AdamW::Make(Options(), 10, parameters_, pool_, stream_);
  const auto result = adamw->Step(17, 1);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(result.status().message()),
              AllOf(HasSubstr("step 17"), HasSubstr("that of bad;")));
  EXPECT_EQ(good->value.ptr<float>()[0], 1);
}

TEST_F(AdamWTest, StatesAreNamedByParameter) {
  Add("a", {1}, {0});
  Add("b", {1}, {0});
  auto adamw = AdamW::Make(Options(), 10, parameters_, pool_, stream_);
  std::vector<std::string> names;
  for (const NamedState& state : adamw->states()) names.push_back(state.name);
  EXPECT_THAT(names, ElementsAre("optimizer.exp_avg/a", "optimizer.exp_avg_sq/a",
                                 "optimizer.exp_avg/b", "optimizer.exp_avg_sq/b"));
  EXPECT_GT(pool_.UsageOf(Purpose::kOptimizer).bytes, 0);
}

TEST(GradClip, FactorIsBoundedByOne) {
  EXPECT_DOUBLE_EQ(ClipFactor(0.5, 1), 1);
  EXPECT_DOUBLE_EQ(ClipFactor(4, 1), 1 / (4 + 1e-6));
  EXPECT_DOUBLE_EQ(ClipFactor(4, 0), 1);
}

}  // namespace
}  // namespace mega::optimizer
