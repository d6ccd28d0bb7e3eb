#include "worker/engine/checkpoint/shares.h"

#include <set>

#include "gtest/gtest.h"
#include "tests/worker/engine/checkpoint/saved.h"

namespace mega::checkpoint {
namespace {

TEST(Shares, EveryByteBelongsToExactlyOneMember) {
  Pool pool{Device{}};
  const State state(pool, {{1}, {3}, {6, 2}, {}, {0, 3}, {700, 1000}, {1, 400000}, {5}}, 0);
  for (const int64_t members : {1, 2, 3, 4, 5, 8, 31}) {
    std::map<std::string, std::set<int64_t>> rows;
    std::map<std::string, int64_t> bytes;
    for (int64_t member = 0; member < members; ++member) {
      for (const NamedSlice& slice : ShareOf(state.slices, member, members)) {
        bytes[slice.name] += slice.view.bytes();
        const int64_t begin = slice.offset.empty() ? 0 : slice.offset[0];
        const int64_t count = slice.view.rank() == 0 ? 1 : slice.view.dim(0);
        for (int64_t row = begin; row < begin + count; ++row)
          EXPECT_TRUE(rows[slice.name].insert(row).second) << slice.name << " row " << row;
      }
    }
    for (const NamedSlice& slice : state.slices)
      EXPECT_EQ(bytes[slice.name], slice.view.bytes()) << slice.name << " over " << members;
  }
}

TEST(Shares, AreAboutEqual) {
  Pool pool{Device{}};
  const State state(pool, {{4000, 256}, {256}, {2000, 512}, {512}, {256, 256}}, 0);
  int64_t total = 0;
  for (const NamedSlice& slice : state.slices) total += slice.view.bytes();
  for (const int64_t members : {2, 3, 5}) {
    for (int64_t member = 0; member < members; ++member) {
      int64_t mine = 0;
      for (const NamedSlice& slice : ShareOf(state.slices, member, members))
        mine += slice.view.bytes();
      EXPECT_NEAR(static_cast<double>(mine), static_cast<double>(total) / members, 300000);
    }
  }
}

}  // namespace
}  // namespace mega::checkpoint
