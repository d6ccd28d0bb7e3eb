#include "kernels/attention.h"

#include <cmath>

#include "gtest/gtest.h"
#include "tests/kernels/attention_shapes.h"
#include "tests/kernels/simd_targets.h"
#include "tests/support/gradient_check.h"
#include "tests/support/tolerance.h"

namespace mega::kernels {
namespace {

using testing::HostTensor;
using testing::RelativeL2;

struct Problem {
  explicit Problem(const AttentionSizes& s, float size = 1)
      : q(HostTensor::Random({s.B, s.S, s.N, s.H}, 1, size)),
        k(HostTensor::Random({s.B, s.K, s.G, s.H}, 2, size)),
        v(HostTensor::Random({s.B, s.K, s.G, s.V}, 3)),
        dout(HostTensor::Random({s.B, s.S, s.N, s.V}, 4)),
        o(dout.shape()),
        lse({s.B, s.N, s.S}),
        dq(q.shape()),
        dk(k.shape()),
        dv(v.shape()),
        scale(1 / std::sqrt(static_cast<float>(s.H))) {}

  void Run(Stream& stream, const AttentionMask& mask) {
    AttentionForward(stream, q, k, v, scale, mask, o, lse);
    AttentionBackward(stream, q, k, v, o, lse, dout, scale, mask, dq, dk, dv);
  }
  void RunReference(Stream& stream, const AttentionMask& mask) {
    AttentionForwardReference(stream, q, k, v, scale, mask, o, lse);
    AttentionBackwardReference(stream, q, k, v, o, lse, dout, scale, mask, dq, dk, dv);
  }

  HostTensor q, k, v, dout, o, lse, dq, dk, dv;
  float scale;
};

// Where a query sees one key its true gradient is 0 and only rounding is left, so gradients are
// measured against inputs of order 1 and not against themselves.
double GradientDistance(const HostTensor& got, const HostTensor& want) {
  const auto n = static_cast<double>(std::max<int64_t>(1, want.elements()));
  const double size = std::sqrt(testing::Dot(want, want) / n);
  return RelativeL2(got, want) * (size < 1e-4 ? size + 1e-4 : 1);
}

void ExpectAgree(const Problem& got, const Problem& want, double tolerance) {
  EXPECT_LE(RelativeL2(got.o, want.o), tolerance);
  EXPECT_LE(RelativeL2(got.lse, want.lse), tolerance);
  EXPECT_LE(GradientDistance(got.dq, want.dq), tolerance);
  EXPECT_LE(GradientDistance(got.dk, want.dk), tolerance);
  EXPECT_LE(RelativeL2(got.dv, want.dv), tolerance);
}

void ExpectSameBits(const Problem& a, const Problem& b) {
  EXPECT_EQ(a.o, b.o);
  EXPECT_EQ(a.lse, b.lse);
  EXPECT_EQ(a.dq, b.dq);
  EXPECT_EQ(a.dk, b.dk);
  EXPECT_EQ(a.dv, b.dv);
}

TEST(Attention, EqualsTheDefinitionForEveryMaskAndOddShape) {
  Stream stream({}, 1);
  for (const AttentionSizes& s : OddAttention())
    for (const bool causal : {true, false})
      for (const int64_t window : {0, 1, 5, 40, 300}) {
        const AttentionMask mask{.causal = causal, .window = window};
        Problem want(s);
        want.RunReference(stream, mask);
        ForEachSimdTarget([&] {
          SCOPED_TRACE(fmt::format("S {} K {} H {} V {} causal {} window {}", s.S, s.K, s.H, s.V,
                                   causal, window));
          Problem got(s);
          got.Run(stream, mask);
          ExpectAgree(got, want, 2e-6);
        });
      }
}

TEST(Attention, DocumentsSeeOnlyThemselves) {
  Stream stream({}, 1);
  for (const std::vector<int32_t>& documents : std::vector<std::vector<int32_t>>{
           {0, 300}, {0, 1, 2, 300}, {0, 13, 13, 40, 290, 300}, {0, 256, 300}}) {
    const AttentionMask mask{.causal = true, .window = 0, .cu_seqlens = documents};
    Problem got({1, 300, 300, 2, 1, 16, 16}), want({1, 300, 300, 2, 1, 16, 16});
    got.Run(stream, mask);
    want.RunReference(stream, mask);
    ExpectAgree(got, want, 2e-6);
  }
}

// Scores of several hundred: the running maximum must rescale, and nothing may overflow.
TEST(Attention, LargeScoresStayAccurate) {
  Stream stream({}, 1);
  const AttentionSizes s{1, 600, 600, 1, 1, 32, 32};
  Problem got(s, 12), want(s, 12);
  got.Run(stream, {});
  want.RunReference(stream, {});
  EXPECT_LE(RelativeL2(got.o, want.o), 1e-4);  // a score's own rounding is 300 · 6e-8 · sqrt(32)
  EXPECT_LE(RelativeL2(got.lse, want.lse), 1e-6);
  EXPECT_LE(RelativeL2(got.dq, want.dq), 1e-3);
}

TEST(Attention, AQueryThatSeesNoKeyGivesZeroAndNoGradient) {
  Stream stream({}, 1);
  Problem p({1, 20, 7, 2, 1, 8, 8});
  p.Run(stream, {});
  for (int64_t i = 0; i < 13; ++i)
    for (int64_t n = 0; n < 2; ++n) {
      EXPECT_EQ(p.lse.f32()[n * 20 + i], -std::numeric_limits<float>::infinity());
      for (int64_t c = 0; c < 8; ++c) {
        EXPECT_EQ(p.o.f32()[(i * 2 + n) * 8 + c], 0);
        EXPECT_EQ(p.dq.f32()[(i * 2 + n) * 8 + c], 0);
      }
    }
}

TEST(Attention, GradientsAgreeWithFiniteDifferences) {
  Stream stream({}, 1);
  Problem p({2, 19, 19, 4, 2, 16, 8});
  p.Run(stream, {});
  const auto loss = [&] {
    AttentionForward(stream, p.q, p.k, p.v, p.scale, {}, p.o, p.lse);
    return testing::Dot(p.o, p.dout);
  };
  EXPECT_LE(testing::GradientError(p.q, p.dq, loss), 2e-3);
  EXPECT_LE(testing::GradientError(p.k, p.dk, loss), 2e-3);
  EXPECT_LE(testing::GradientError(p.v, p.dv, loss), 2e-3);
}

TEST(Attention, GivesTheSameBitsTwiceAndForAnyNumberOfThreads) {
  Stream one({}, 1), two({}, 2), three({}, 3);
  const AttentionSizes s{2, 130, 130, 4, 2, 32, 32};
  Problem first(s), second(s), team(s), odd(s);
  first.Run(one, {});
  second.Run(one, {});
  team.Run(two, {});
  odd.Run(three, {});
  ExpectSameBits(first, second);
  ExpectSameBits(first, team);
  ExpectSameBits(first, odd);
}

// The batch a row is in, and the rows beside it, must not reach its bits: data-parallel ranks cut
// the batch anywhere.
TEST(Attention, ARowsBitsDoNotDependOnItsBatch) {
  Stream stream({}, 1);
  Problem both({2, 70, 70, 2, 2, 16, 16});
  both.Run(stream, {});
  Problem second({1, 70, 70, 2, 2, 16, 16});
  const auto half = [](HostTensor& x) { return x.view().Rows(1, 1); };
  std::copy_n(half(both.q).ptr<float>(), second.q.elements(), second.q.f32().begin());
  std::copy_n(half(both.k).ptr<float>(), second.k.elements(), second.k.f32().begin());
  std::copy_n(half(both.v).ptr<float>(), second.v.elements(), second.v.f32().begin());
  AttentionForward(stream, second.q, second.k, second.v, second.scale, {}, second.o, second.lse);
  EXPECT_TRUE(std::equal(second.o.f32().begin(), second.o.f32().end(), half(both.o).ptr<float>()));
}

TEST(AttentionDeathTest, DocumentsMustCoverTheRow) {
  Stream stream({}, 1);
  Problem p({1, 8, 8, 1, 1, 4, 4});
  const std::vector<int32_t> documents{0, 7};
  const AttentionMask mask{.causal = true, .window = 0, .cu_seqlens = documents};
  EXPECT_DEATH(p.Run(stream, mask), "MEGA_CHECK");
}

}  // namespace
}  // namespace mega::kernels
