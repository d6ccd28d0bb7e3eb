// Every collective on every transport: exact answers, the same bits on all ranks, runs and
// transports.
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>

#include "base/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/engine/distributed/backends.h"
#include "tests/worker/engine/distributed/ranks.h"

namespace mega::distributed {
namespace {

TensorView ViewOf(std::vector<float>& values) {
  return TensorView(values.data(), DType::kF32, Shape{static_cast<int64_t>(values.size())});
}

// Values whose sum depends on the order of adding.
std::vector<float> Values(int rank, int64_t count, uint32_t salt = 0) {
  std::vector<float> values(count);
  uint64_t x = 88172645463325252ull + 977 * rank + 1009 * salt;
  for (float& value : values) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    value = std::ldexp(static_cast<float>(static_cast<int64_t>(x)) / 9.2e18f,
                       static_cast<int>(x % 24) - 12);
  }
  return values;
}

std::vector<float> SumInRankOrder(int ranks, int64_t count) {
  std::vector<float> sum = Values(0, count);
  for (int r = 1; r < ranks; ++r) {
    const std::vector<float> next = Values(r, count);
    for (int64_t i = 0; i < count; ++i) sum[i] += next[i];
  }
  return sum;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

constexpr int64_t kSizes[] = {0, 1, 7, 1024, 1025, 70001, (1 << 20) + 3};

class Collectives : public testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  std::string backend() const { return std::get<0>(GetParam()); }
  int ranks() const { return std::get<1>(GetParam()); }
};

TEST_P(Collectives, AllReduceAddsInRankOrderBitForBit) {
  std::map<int64_t, std::vector<float>> expected;
  for (const int64_t size : kSizes) expected[size] = SumInRankOrder(ranks(), size);
  RunRanks(backend(), ranks(), [&](Communicator& data) {
    Stream stream;
    for (const int64_t size : kSizes) {
      std::vector<float> io = Values(data.rank(), size);
      ASSERT_EQ(data.AllReduce(ViewOf(io), ReduceOp::kSum, stream).Wait(), absl::OkStatus());
      EXPECT_TRUE(SameBits(io, expected[size])) << size << " on rank " << data.rank();
    }
    EXPECT_EQ(data.sequence(), static_cast<int64_t>(std::size(kSizes)));
  });
}

TEST_P(Collectives, MaxAndMinKeepNan) {
  RunRanks(backend(), ranks(), [&](Communicator& data) {
    Stream stream;
    for (const int64_t size : {int64_t{5}, int64_t{5000}}) {
      std::vector<float> high(size, static_cast<float>(data.rank())), low = high;
      if (data.rank() == 0) high[3] = low[3] = std::nanf("");
      ASSERT_TRUE(data.AllReduce(ViewOf(high), ReduceOp::kMax, stream).Wait().ok());
      ASSERT_TRUE(data.AllReduce(ViewOf(low), ReduceOp::kMin, stream).Wait().ok());
      EXPECT_EQ(high[0], static_cast<float>(data.size() - 1));
      EXPECT_EQ(low[0], 0.0f);
      EXPECT_TRUE(std::isnan(high[3]) && std::isnan(low[3]));
    }
  });
}

TEST_P(Collectives, ReduceScatterGivesEveryRankItsPartOfTheSum) {
  for (const int64_t part : {int64_t{0}, int64_t{1}, int64_t{7}, int64_t{65537}, int64_t{200003}}) {
    const std::vector<float> sum = SumInRankOrder(ranks(), part * ranks());
    RunRanks(backend(), ranks(), [&](Communicator& data) {
      Stream stream;
      std::vector<float> in = Values(data.rank(), part * data.size());
      std::vector<float> out(part, -1);
      ASSERT_EQ(data.ReduceScatter(ViewOf(in), ViewOf(out), ReduceOp::kSum, stream).Wait(),
                absl::OkStatus());
      const auto begin = sum.begin() + data.rank() * part;
      EXPECT_TRUE(SameBits(out, {begin, begin + part})) << part;
      EXPECT_TRUE(SameBits(in, Values(data.rank(), part * data.size()))) << "the input changed";
    });
  }
}

TEST_P(Collectives, AllGatherAndAllToAllPlaceEveryPart) {
  RunRanks(backend(), ranks(), [&](Communicator& data) {
    Stream stream;
    const int n = data.size();
    for (const int64_t part : {int64_t{0}, int64_t{1}, int64_t{7}, int64_t{100003}}) {
      std::vector<float> in = Values(data.rank(), part), out(part * n, -1);
      ASSERT_TRUE(data.AllGather(ViewOf(in), ViewOf(out), stream).Wait().ok());
      for (int r = 0; r < n; ++r)
        EXPECT_TRUE(
            SameBits({out.begin() + r * part, out.begin() + (r + 1) * part}, Values(r, part)));

      std::vector<float> to_all, from_all(part * n, -1);
      for (int r = 0; r < n; ++r)
        for (const float v : Values(data.rank(), part, 100 + r)) to_all.push_back(v);
      ASSERT_TRUE(data.AllToAll(ViewOf(to_all), ViewOf(from_all), stream).Wait().ok());
      for (int r = 0; r < n; ++r)
        EXPECT_TRUE(SameBits({from_all.begin() + r * part, from_all.begin() + (r + 1) * part},
                             Values(r, part, 100 + data.rank())));
    }
  });
}

TEST_P(Collectives, AllGatherMayReadItsOwnPartOfTheOutput) {
  RunRanks(backend(), ranks(), [&](Communicator& data) {
    Stream stream;
    constexpr int64_t kPart = 5000;
    std::vector<float> out(kPart * data.size());
    const TensorView mine = ViewOf(out).Rows(data.rank() * kPart, kPart);
    const std::vector<float> values = Values(data.rank(), kPart);
    std::memcpy(mine.data(), values.data(), mine.bytes());
    ASSERT_TRUE(data.AllGather(mine, ViewOf(out), stream).Wait().ok());
    for (int r = 0; r < data.size(); ++r)
      EXPECT_TRUE(
          SameBits({out.begin() + r * kPart, out.begin() + (r + 1) * kPart}, Values(r, kPart)));
  });
}

TEST_P(Collectives, BroadcastFromEveryRoot) {
  RunRanks(backend(), ranks(), [&](Communicator& data) {
    Stream stream;
    for (int root = 0; root < data.size(); ++root) {
      for (const int64_t size : {int64_t{0}, int64_t{1}, int64_t{300001}}) {
        std::vector<float> io = Values(data.rank(), size);
        ASSERT_TRUE(data.Broadcast(ViewOf(io), root, stream).Wait().ok());
        EXPECT_TRUE(SameBits(io, Values(root, size)));
      }
    }
  });
}

TEST_P(Collectives, SendsBothWaysAtOnceDoNotBlockEachOther) {
  RunRanks(backend(), ranks(), [&](Communicator& data) {
    Stream stream;
    const int n = data.size();
    if (n == 1) return;
    const int next = (data.rank() + 1) % n, previous = (data.rank() + n - 1) % n;
    std::vector<std::vector<float>> out, in;
    std::vector<Work> works;
    for (const int64_t size : {int64_t{1}, int64_t{200000}, int64_t{0}, int64_t{9}}) {
      out.push_back(Values(data.rank(), size));
      in.emplace_back(size, -1);
    }
    for (std::vector<float>& values : out) works.push_back(data.Send(ViewOf(values), next, stream));
    for (std::vector<float>& values : in)
      works.push_back(data.Recv(ViewOf(values), previous, stream));
    for (Work& work : works) ASSERT_EQ(work.Wait(), absl::OkStatus());
    for (const std::vector<float>& values : in)
      EXPECT_TRUE(SameBits(values, Values(previous, static_cast<int64_t>(values.size()))));
  });
}

TEST_P(Collectives, NobodyPassesABarrierBeforeTheLastHasCome) {
  std::atomic<int> arrived{0};
  RunRanks(backend(), ranks(), [&](Communicator& data) {
    Stream stream;
    for (int round = 1; round <= 20; ++round) {
      ++arrived;
      ASSERT_TRUE(data.Barrier(stream).Wait().ok());
      EXPECT_GE(arrived.load(), round * data.size());
      ASSERT_TRUE(data.Barrier(stream).Wait().ok());
    }
  });
}

TEST_P(Collectives, ManyInFlightEndInOrderWithTheSameBits) {
  constexpr int kInFlight = 40;
  RunRanks(backend(), ranks(), [&](Communicator& data) {
    Stream stream;
    std::vector<std::vector<float>> buffers;
    std::vector<Work> works;
    for (int i = 0; i < kInFlight; ++i) buffers.push_back(Values(data.rank(), 997 * (i % 7)));
    for (std::vector<float>& buffer : buffers)
      works.push_back(data.AllReduce(ViewOf(buffer), ReduceOp::kSum, stream));
    ASSERT_EQ(works.back().Wait(), absl::OkStatus());
    for (int i = 0; i < kInFlight; ++i) {
      EXPECT_TRUE(works[i].Done());
      EXPECT_EQ(works[i].sequence(), i + 1);
      EXPECT_TRUE(SameBits(buffers[i], SumInRankOrder(data.size(), 997 * (i % 7))));
    }
  });
}

TEST_P(Collectives, IntegersAndDoubles) {
  RunRanks(backend(), ranks(), [&](Communicator& data) {
    Stream stream;
    const int n = data.size();
    std::vector<int64_t> counts(3000, int64_t{1} << 40);
    std::vector<double> halves(3000, 0.5 + data.rank());
    const Shape shape{3000};
    ASSERT_TRUE(
        data.AllReduce(TensorView(counts.data(), DType::kI64, shape), ReduceOp::kSum, stream)
            .Wait()
            .ok());
    ASSERT_TRUE(
        data.AllReduce(TensorView(halves.data(), DType::kF64, shape), ReduceOp::kSum, stream)
            .Wait()
            .ok());
    EXPECT_THAT(counts, testing::Each((int64_t{1} << 40) * n));
    EXPECT_THAT(halves, testing::Each(n * (n - 1) / 2 + 0.5 * n));
  });
}

INSTANTIATE_TEST_SUITE_P(, Collectives,
                         testing::Combine(testing::ValuesIn(Backends()), testing::Range(1, 6)),
                         [](const auto& info) {
                           return std::get<0>(info.param) + std::to_string(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace mega::distributed
