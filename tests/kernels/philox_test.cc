#include "kernels/philox.h"

#include <cmath>
#include <set>

#include "gtest/gtest.h"
#include "tests/support/tensors.h"

namespace mega::kernels {
namespace {

using testing::HostTensor;
using Block = std::array<uint32_t, 4>;

// Random123's kat_vectors, philox4x32 with 10 rounds.
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(Philox({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(PhiloxBits, EveryPartOfEveryArgumentMatters) {
  std::set<uint64_t> seen;
  for (const uint64_t x : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32, uint64_t{1} << 63}) {
    seen.insert(PhiloxBits(x, 5, 6));
    seen.insert(PhiloxBits(5, x, 6));
    seen.insert(PhiloxBits(5, 6, x));
  }
  EXPECT_EQ(seen.size(), 12u);
}

TEST(PhiloxUniform, CoversTheUnitInterval) {
  double sum = 0, least = 1, most = 0;
  for (uint64_t i = 0; i < 100000; ++i) {
    const double u = PhiloxUniform(1, 2, i);
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    least = std::min(least, u);
    most = std::max(most, u);
  }
  EXPECT_NEAR(sum / 100000, 0.5, 0.004);  // four standard deviations
  EXPECT_LT(least, 1e-4);
  EXPECT_GT(most, 1 - 1e-4);
}

TEST(FillNormal, HasTheMomentsOfANormal) {
  Stream stream({}, 2);
  HostTensor x({1000, 201});
  const int64_t offset[] = {0, 0};
  FillNormal(stream, x, x.shape(), offset, 3, 4, 0.5f, 2);
  double mean = 0, square = 0, fourth = 0;
  for (const float v : x.f32()) mean += v;
  mean /= static_cast<double>(x.elements());
  for (const float v : x.f32()) square += std::pow(v - mean, 2), fourth += std::pow(v - mean, 4);
  square /= static_cast<double>(x.elements());
  fourth /= static_cast<double>(x.elements());
  EXPECT_NEAR(mean, 0.5, 0.02);
  EXPECT_NEAR(square, 4, 0.06);
  EXPECT_NEAR(fourth / (square * square), 3, 0.06);
}

// A shard, a slice with odd offsets and any number of threads draw what one rank draws.
TEST(FillNormal, ASliceIsThatPartOfTheWhole) {
  Stream one({}, 1), two({}, 2);
  const Shape global{5, 7, 9};
  HostTensor whole(global);
  const int64_t zero[] = {0, 0, 0};
  FillNormal(one, whole, global, zero, 11, 12, 0, 1);
  const auto all = whole.view().As<float, 3>();
  for (const auto& [begin, size] :
       std::vector<std::pair<std::array<int64_t, 3>, Shape>>{{{0, 0, 0}, {5, 7, 9}},
                                                             {{1, 2, 3}, {2, 3, 4}},
                                                             {{4, 6, 8}, {1, 1, 1}},
                                                             {{0, 0, 1}, {5, 7, 3}},
                                                             {{2, 0, 0}, {0, 7, 9}}}) {
    HostTensor slice(size);
    FillNormal(two, slice, global, begin, 11, 12, 0, 1);
    const auto part = slice.view().As<float, 3>();
    for (int64_t i = 0; i < size[0]; ++i)
      for (int64_t j = 0; j < size[1]; ++j)
        for (int64_t k = 0; k < size[2]; ++k)
          ASSERT_EQ(part(i, j, k), all(begin[0] + i, begin[1] + j, begin[2] + k));
  }
}

}  // namespace
}  // namespace mega::kernels
