#include "worker/engine/distributed/grad_buffer.h"

#include <cstring>
#include <deque>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/engine/distributed/ranks.h"

namespace mega::distributed {
namespace {

// A model of parameters with these sizes, in forward order.
struct Model {
  Model(Pool& pool, const std::vector<int64_t>& sizes) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      values.push_back(pool.Zeros(DType::kF32, Shape{sizes[i]}, Purpose::kWeights));
      Parameter& parameter = parameters.emplace_back();
      parameter.info.name = fmt::format("p{}", i);
      parameter.value = values.back();
    }
    for (Parameter& parameter : parameters) pointers.push_back(&parameter);
  }
  std::deque<Tensor> values;
  std::deque<Parameter> parameters;
  std::vector<Parameter*> pointers;
};

void Backward(Model& model, GradBuffer& grads, Stream& stream, float value) {
  for (auto p = model.pointers.rbegin(); p != model.pointers.rend(); ++p) {
    for (float& g : (*p)->main_grad.flat<float>()) g += value;
    grads.MarkReady(**p, stream);
  }
}

TEST(GradBuffer, GradientsThatDoNotFitAreAnError) {
  Pool pool{Device{}};
  Parameter huge;
  huge.value = TensorView(nullptr, DType::kF32, Shape{int64_t{1} << 58});
  Parameter* const parameters[] = {&huge};
  const auto grads = GradBuffer::Make(pool, parameters, 1, nullptr, true);
  EXPECT_EQ(grads.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(grads.status().message()), ::testing::HasSubstr("the gradients"));
}

TEST(GradBuffer, GradientsLieInReverseForwardOrderAndEndAtTheirOwnElements) {
  Pool pool{Device{}};
  Model model(pool, {100, 3, 64, 1});
  GradBuffer grads(pool, model.pointers, 2, nullptr, true);
  const std::byte* last = nullptr;
  for (auto p = model.pointers.rbegin(); p != model.pointers.rend(); ++p) {
    EXPECT_EQ((*p)->main_grad.shape(), (*p)->value.shape());
    EXPECT_GT((*p)->main_grad.data(), last);
    EXPECT_EQ(reinterpret_cast<uintptr_t>((*p)->main_grad.data()) % 64, 0u);
    last = (*p)->main_grad.data() + (*p)->main_grad.bytes() - 1;
  }
  EXPECT_EQ(model.pointers.back()->main_grad.data(), grads.whole().data());
}

TEST(GradBuffer, BucketsAreAboutEqualAndNeverMoreThanAsked) {
  Pool pool{Device{}};
  for (const int64_t asked : {1, 2, 3, 8, 50}) {
    Model model(pool, std::vector<int64_t>(20, 160));
    GradBuffer grads(pool, model.pointers, asked, nullptr, true);
    EXPECT_EQ(grads.buckets(), std::min<int64_t>(asked, 20));
  }
  Model one_huge(pool, {16, 16, 100000, 16});
  GradBuffer grads(pool, one_huge.pointers, 4, nullptr, true);
  EXPECT_LE(grads.buckets(), 4);
}

TEST(GradBuffer, SumsOverRanksWithAndWithoutOverlap) {
  for (const bool overlap : {false, true}) {
    for (const int64_t buckets : {1, 3, 100}) {
      InprocHub hub(3);
      InThreads(3, [&](int64_t rank) {
        const auto data = hub.Make(rank, Everybody(3));
        Pool pool{Device{}};
        Stream stream;
        Model model(pool, {1000, 7, 4096, 129, 70000});
        GradBuffer grads(pool, model.pointers, buckets, data.get(), overlap);
        for (int step = 1; step <= 3; ++step) {
          grads.Zero(stream);
          Backward(model, grads, stream, static_cast<float>(step * (rank + 1)));
          ASSERT_EQ(grads.Finish(stream), absl::OkStatus());
          for (const Parameter* parameter : model.pointers)
            ASSERT_THAT(parameter->main_grad.flat<float>(),
                        testing::Each(static_cast<float>(6 * step)));
        }
        EXPECT_EQ(data->sequence(), 3 * grads.buckets());
      });
    }
  }
}

TEST(GradBuffer, AFullBucketLeavesBeforeBackwardEnds) {
  InprocHub hub(2);
  InThreads(2, [&](int64_t rank) {
    const auto data = hub.Make(rank, Everybody(2));
    Pool pool{Device{}};
    Stream stream;
    Model model(pool, {512, 512, 512, 512});
    GradBuffer grads(pool, model.pointers, 4, data.get(), true);
    grads.Zero(stream);
    grads.MarkReady(*model.pointers[3], stream);
    EXPECT_EQ(data->sequence(), 1);
    // Buckets leave in their order, whatever is marked first.
    grads.MarkReady(*model.pointers[1], stream);
    EXPECT_EQ(data->sequence(), 1);
    grads.MarkReady(*model.pointers[2], stream);
    EXPECT_EQ(data->sequence(), 3);
    grads.MarkReady(*model.pointers[0], stream);
    EXPECT_EQ(grads.Finish(stream), absl::OkStatus());
  });
}

TEST(GradBuffer, AForgottenParameterIsNamed) {
  Pool pool{Device{}};
  Stream stream;
  Model model(pool, {16, 16, 16});
  GradBuffer grads(pool, model.pointers, 2, nullptr, true);
  grads.Zero(stream);
  grads.MarkReady(*model.pointers[2], stream);
  grads.MarkReady(*model.pointers[0], stream);
  const absl::Status status = grads.Finish(stream);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("p1"));
  EXPECT_THAT(std::string(status.message()), testing::Not(testing::HasSubstr("p0")));
}

TEST(GradBufferDeathTest, MarkingTwiceIsABug) {
  Pool pool{Device{}};
  Stream stream;
  Model model(pool, {16, 16});
  GradBuffer grads(pool, model.pointers, 1, nullptr, true);
  grads.Zero(stream);
  grads.MarkReady(*model.pointers[0], stream);
  EXPECT_DEATH(grads.MarkReady(*model.pointers[0], stream), "p0 was marked ready twice");
}

TEST(GradBuffer, TheCutDoesNotDependOnTheRanks) {
  Pool pool{Device{}};
  Model alone(pool, {4000, 1, 77, 900, 900, 30000});
  GradBuffer one(pool, alone.pointers, 3, nullptr, true);
  InprocHub hub(2);
  const auto data = hub.Make(0, Everybody(2));
  Model shared(pool, {4000, 1, 77, 900, 900, 30000});
  GradBuffer two(pool, shared.pointers, 3, data.get(), false);
  EXPECT_EQ(one.buckets(), two.buckets());
  for (size_t i = 0; i < alone.pointers.size(); ++i)
    EXPECT_EQ(alone.pointers[i]->main_grad.data() - one.whole().data(),
              shared.pointers[i]->main_grad.data() - two.whole().data());
}

}  // namespace
}  // namespace mega::distributed
