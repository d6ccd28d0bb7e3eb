#include "worker/engine/tensor/pool.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

// Running out is what one test is about; sanitizers would abort instead.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }

namespace mega {
namespace {

TEST(Pool, AStepAfterTheFirstAllocatesNothing) {
  Pool pool{Device{}};
  const auto step = [&] {
    std::vector<Tensor> saved;
    for (const int64_t rows : {1, 300, 7, 4096, 300})
      saved.push_back(pool.Allocate(DType::kF32, Shape{rows, 64}, Purpose::kActivations));
    Tensor early = std::move(saved[1]);
    saved.clear();
  };
  step();
  const int64_t after_first = pool.device_allocations();
  for (int i = 0; i < 5; ++i) step();
  EXPECT_EQ(pool.device_allocations(), after_first);
}

TEST(Pool, WithoutReuseEveryTensorIsItsOwnAllocation) {
  Pool pool(Device{}, /*reuse=*/false);
  for (int i = 0; i < 5; ++i) pool.Allocate(DType::kF32, Shape{64}, Purpose::kWorkspace);
  EXPECT_EQ(pool.device_allocations(), 5);
}

TEST(Pool, KnowsWhatEveryByteIsFor) {
  Pool pool{Device{}};
  Tensor weights = pool.Allocate(DType::kF32, Shape{1000}, Purpose::kWeights);
  {
    Tensor grads = pool.Zeros(DType::kF32, Shape{500}, Purpose::kGrads);
    EXPECT_EQ(pool.UsageOf(Purpose::kGrads).bytes, 2000);
    EXPECT_EQ(pool.Total().bytes, 6000);
    EXPECT_THAT(grads.view().flat<float>(), testing::Each(0.0f));
  }
  EXPECT_EQ(pool.UsageOf(Purpose::kGrads).bytes, 0);
  EXPECT_EQ(pool.UsageOf(Purpose::kGrads).peak_bytes, 2000);
  EXPECT_EQ(pool.Total().bytes, 4000);
  EXPECT_EQ(pool.Total().peak_bytes, 6000);
}

TEST(Pool, TensorsInUseNeverShareMemoryAndAreAligned) {
  Pool pool{Device{}};
  std::vector<Tensor> tensors;
  std::set<std::byte*> places;
  for (int round = 0; round < 3; ++round) {
    for (const int64_t n : {0, 0, 1, 63, 64, 65, 1000}) {
      tensors.push_back(pool.Allocate(DType::kU8, Shape{n}, Purpose::kWorkspace));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(tensors.back().view().data()) % 64, 0u);
      EXPECT_TRUE(places.insert(tensors.back().view().data()).second);
    }
    tensors.clear();
    places.clear();
  }
}

TEST(Pool, AMovedTensorFreesOnce) {
  Pool pool{Device{}};
  Tensor a = pool.Allocate(DType::kF32, Shape{8}, Purpose::kComm);
  Tensor b = std::move(a);
  EXPECT_FALSE(a.defined());  // NOLINT: moved-from tensors own nothing
  b = pool.Allocate(DType::kF32, Shape{16}, Purpose::kComm);
  EXPECT_EQ(pool.UsageOf(Purpose::kComm).bytes, 64);
  b = Tensor();
  EXPECT_EQ(pool.UsageOf(Purpose::kComm).bytes, 0);
}

TEST(Pool, RunningOutSaysWhatTheMemoryIsUsedFor) {
  Pool pool{Device{}};
  const Tensor weights = pool.Allocate(DType::kF32, Shape{1000}, Purpose::kWeights);
  const absl::Status status =
      pool.TryAllocate(DType::kF32, Shape{int64_t{1} << 58}, Purpose::kActivations).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(testing::HasSubstr("activations"), testing::HasSubstr("weights 4000"),
                             testing::HasSubstr("lower")));
  EXPECT_EQ(pool.Total().bytes, 4000);
}

TEST(Pool, ShapesWithoutASizeAreRefused) {
  Pool pool{Device{}};
  for (const Shape& shape : {Shape{-1}, Shape{int64_t{1} << 40, int64_t{1} << 40}})
    EXPECT_EQ(pool.TryAllocate(DType::kF32, shape, Purpose::kWorkspace).status().code(),
              absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace mega
