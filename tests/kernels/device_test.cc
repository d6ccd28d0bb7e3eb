#include "kernels/device/device.h"

#include <atomic>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/device/buffer.h"
#include "kernels/device/dtype.h"
#include "kernels/parallel_for.h"
#include "tests/support/tensors.h"

namespace mega::kernels {
namespace {

using ::testing::HasSubstr;

TEST(Device, CudaIsRefusedWithTheWayOut) {
  const absl::Status status = CheckDevice({.kind = DeviceKind::kCuda});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("MEGA_CUDA"));
  EXPECT_FALSE(Buffer::Allocate({.kind = DeviceKind::kCuda}, 64).ok());
  EXPECT_TRUE(CheckDevice({}).ok());
  EXPECT_THAT(NumericLibraries(), HasSubstr("dnnl "));
}

TEST(Buffer, IsAlignedMovesAndSaysWhenMemoryIsOut) {
  for (const int64_t bytes : {0, 1, 63, 64, 65, 100000}) {
    absl::StatusOr<Buffer> buffer = Buffer::Allocate({}, bytes);
    ASSERT_TRUE(buffer.ok());
    EXPECT_EQ(buffer->bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % 64, 0u);
    std::byte* const data = buffer->data();
    Buffer moved = *std::move(buffer);
    EXPECT_EQ(moved.data(), data);
    moved = Buffer();
    EXPECT_EQ(moved.bytes(), 0);
  }
  EXPECT_EQ(Buffer::Allocate({}, int64_t{1} << 60).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Buffer::Allocate({}, std::numeric_limits<int64_t>::max()).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Buffer::Allocate({}, -1).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(DType, NamesRoundTrip) {
  for (int i = 0; i <= static_cast<int>(DType::kU64); ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(DTypeFromName(NameOf(dtype)), dtype);
    EXPECT_GT(SizeOf(dtype), 0);
  }
  EXPECT_EQ(DTypeFromName("F99"), std::nullopt);
}

TEST(TensorView, RowsAreAWindow) {
  testing::HostTensor x = testing::HostTensor::Random({5, 3}, 1);
  const TensorView rows = x.view().Rows(2, 2);
  EXPECT_EQ(rows.shape(), (Shape{2, 3}));
  EXPECT_EQ(rows.ptr<float>(), x.view().ptr<float>() + 6);
  EXPECT_EQ(x.view().Rows(5, 0).elements(), 0);
  EXPECT_DEATH(x.view().Rows(4, 2), "MEGA_CHECK");
}

TEST(ParallelFor, CoversEveryIndexOnceInAFixedSplit) {
  for (const int threads : {0, 1, 2, 3, 7})
    for (const int64_t n : {0, 1, 2, 10, 97})
      for (const int64_t grain : {1, 3, 1000}) {
        Stream stream({}, threads);
        std::vector<std::atomic<int>> count(static_cast<size_t>(n));
        ParallelFor(stream, n, grain, [&](int64_t begin, int64_t end) {
          EXPECT_LT(begin, end);
          for (int64_t i = begin; i < end; ++i) ++count[i];
        });
        for (const auto& c : count) EXPECT_EQ(c, 1);
      }
}

TEST(ParallelFor, RanksAsThreadsMayUseItAtOnce) {
  std::atomic<int64_t> sum{0};
  {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < 3; ++rank)
      ranks.emplace_back([&] {
        Stream stream({}, 2);
        for (int i = 0; i < 50; ++i)
          ParallelFor(stream, 1000, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
      });
  }
  EXPECT_EQ(sum, 3 * 50 * 1000);
}

}  // namespace
}  // namespace mega::kernels
