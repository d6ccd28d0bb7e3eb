#include "worker/engine/transformer/rope_table.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/engine/harness/tiny.h"

namespace mega::transformer {
namespace {

// Case: a model of 128K positions took a table of them all to train on sequences of a thousand.
TEST(RopeTable, IsAsLongAsTheSequencesAre) {
  Pool pool{Device{}};
  Stream stream;
  Context context{.pool = pool, .stream = stream};
  planner::ModelSpec spec = testing::TinySpec();
  spec.max_position_embeddings = int64_t{1} << 40;
  RopeTable rope(context, spec);
  EXPECT_EQ(pool.UsageOf(Purpose::kWeights).bytes, 0);
  rope.SequentialRows(2, 64);
  EXPECT_EQ(pool.UsageOf(Purpose::kWeights).bytes, 64 * spec.head_dim * 4);
  EXPECT_EQ(rope.cos().dim(0), 64);
}

TEST(RopeTable, GrowsToTheSameAnglesAndNoFurtherThanTheModel) {
  Pool pool{Device{}};
  Stream stream;
  Context context{.pool = pool, .stream = stream};
  planner::ModelSpec spec = testing::TinySpec();
  spec.max_position_embeddings = 100;
  RopeTable whole(context, spec), grown(context, spec);
  whole.SequentialRows(1, 100);
  for (int32_t position = 0; position < 100; ++position) grown.Rows(std::span(&position, 1));
  ASSERT_EQ(grown.cos().dim(0), 100);
  const auto values = [](TensorView view) {
    const auto flat = view.flat<const float>();
    return std::vector<float>(flat.begin(), flat.end());
  };
  EXPECT_EQ(values(grown.cos()), values(whole.cos()));
  EXPECT_EQ(values(grown.sin()), values(whole.sin()));
}

}  // namespace
}  // namespace mega::transformer
