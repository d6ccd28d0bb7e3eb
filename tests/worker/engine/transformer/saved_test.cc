#include "worker/engine/transformer/saved.h"

#include <memory>

#include "gtest/gtest.h"

namespace mega::transformer {
namespace {

TEST(Saved, HoldsEachMicroBatchUntilItIsDropped) {
  Saved<std::unique_ptr<int>> saved;
  saved.Put(4, std::make_unique<int>(40));
  saved.Put(2, std::make_unique<int>(20));
  EXPECT_EQ(*saved.At(4), 40);
  saved.Drop(4);
  EXPECT_EQ(*saved.At(2), 20);
  saved.Drop(2);
  EXPECT_TRUE(saved.empty());
}

TEST(SavedDeathTest, RefusesABackwardWithoutItsForward) {
  Saved<int> saved;
  saved.Put(0, 1);
  EXPECT_DEATH(saved.At(1), "found");
  EXPECT_DEATH(saved.Put(0, 2), "micro_batch");
}

}  // namespace
}  // namespace mega::transformer
