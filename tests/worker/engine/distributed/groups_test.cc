#include "worker/engine/distributed/groups.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/engine/distributed/ranks.h"

namespace mega::distributed {
namespace {

planner::RankMesh DataParallel(int64_t n) {
  v1::Layout layout;
  layout.set_data_parallel_size(n);
  for (auto set : {&v1::Layout::set_tensor_parallel_size, &v1::Layout::set_context_parallel_size,
                   &v1::Layout::set_pipeline_parallel_size, &v1::Layout::set_expert_parallel_size,
                   &v1::Layout::set_expert_tensor_parallel_size, &v1::Layout::set_virtual_stages})
    (layout.*set)(1);
  auto mesh = planner::RankMesh::Make(layout, n);
  MEGA_CHECK_OK(mesh);
  return *mesh;
}

TEST(Groups, OneRankHasNoCommunicatorsAndNeedsNoTransport) {
  const auto groups = MakeGroups(DataParallel(1), 0, nullptr, absl::Seconds(1));
  ASSERT_TRUE(groups.ok()) << groups.status();
  EXPECT_EQ(groups->data, nullptr);
}

TEST(Groups, DataParallelRanksShareTheDataGroup) {
  constexpr int64_t kRanks = 3;
  InprocHub hub(kRanks);
  InThreads(kRanks, [&](int64_t rank) {
    const planner::RankMesh mesh = DataParallel(kRanks);
    auto groups = MakeGroups(mesh, rank, &hub.transport(rank), absl::Seconds(60));
    ASSERT_TRUE(groups.ok()) << groups.status();
    EXPECT_EQ(groups->data->size(), kRanks);
    EXPECT_EQ(groups->data->rank(), rank);
    Stream stream;
    float one = 1;
    const TensorView view(&one, DType::kF32, Shape{1});
    // Two groups of the same ranks do not take each other's messages.
    const auto other = hub.Make(rank, {.name = "other", .ranks = {0, 1, 2}});
    Work barrier = other->Barrier(stream);
    ASSERT_TRUE(groups->data->AllReduce(view, ReduceOp::kSum, stream).Wait().ok());
    ASSERT_TRUE(barrier.Wait().ok());
    EXPECT_EQ(one, 3.0f);
  });
}

}  // namespace
}  // namespace mega::distributed
