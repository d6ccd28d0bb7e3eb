#include "worker/engine/optimizer/grad_clip.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/elementwise.h"
#include "tests/support/reference_cases.h"
#include "tests/support/tolerance.h"

namespace mega::optimizer {
namespace {

using distributed::Parameter;
using testing::HostTensor;

TEST(GradClip, NormAndClippedGradientsAreThoseOfTheReference) {
  int compared = 0;
  for (const std::string& name : testing::ReferenceCaseNames()) {
    testing::ReferenceCase c = testing::LoadReferenceCase(name);
    if (c.op() != "clip_grad_norm") continue;
    ++compared;
    std::vector<Parameter> parameters;
    std::vector<HostTensor> grads;
    for (int i = 0; c.Has("in.g" + std::to_string(i)); ++i)
      grads.push_back(c.Get("in.g" + std::to_string(i)));
    parameters.resize(grads.size());
    std::vector<Parameter*> list;
    for (size_t i = 0; i < grads.size(); ++i) {
      parameters[i].main_grad = grads[i];
      list.push_back(&parameters[i]);
    }
    Stream stream({}, 1);
    // A scale that is taken out again: the norm is that of grad_scale · main_grad.
    for (HostTensor& grad : grads) kernels::Scale(stream, grad, 4);
    const GradNorm norm = MeasureGradNorm(stream, list, 0.25);
    EXPECT_TRUE(norm.first_bad.empty());
    EXPECT_NEAR(norm.norm / c.Get("out.norm").f32()[0], 1, 1e-6) << name;
    const double factor = 0.25 * ClipFactor(norm.norm, c.about.at("max_norm").get<double>());
    for (size_t i = 0; i < grads.size(); ++i) {
      kernels::Scale(stream, grads[i], static_cast<float>(factor));
      EXPECT_LT(testing::RelativeL2(grads[i], c.Get("out.clipped_g" + std::to_string(i))), 1e-6)
          << name << " g" << i;
    }
  }
  EXPECT_EQ(compared, 2);
}

}  // namespace
}  // namespace mega::optimizer
