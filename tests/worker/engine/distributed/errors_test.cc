// What goes wrong ends every rank's operation, soon, with a message that names who and what.
#include <future>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/engine/distributed/backends.h"
#include "tests/worker/engine/distributed/ranks.h"

namespace mega::distributed {
namespace {

using std::chrono::steady_clock;
using testing::AllOf;
using testing::HasSubstr;

class CollectiveErrors : public testing::TestWithParam<std::string> {};

TensorView ViewOf(std::vector<float>& values) {
  return TensorView(values.data(), DType::kF32, Shape{static_cast<int64_t>(values.size())});
}

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

TEST_P(CollectiveErrors, TheDeadlineNamesTheRanksThatDidNotArrive) {
  std::atomic<int> failed{0};
  RunRanks(
      GetParam(), 4,
      [&](Communicator& data) {
        Stream stream;
        std::vector<float> io(100000, 1);
        ASSERT_TRUE(data.Barrier(stream).Wait().ok());
        if (data.rank() == 1 || data.rank() == 3) {
          while (failed.load() < 2) std::this_thread::yield();  // alive, but not coming
          return;
        }
        const absl::Status status = data.AllReduce(ViewOf(io), ReduceOp::kSum, stream).Wait();
        ++failed;
        EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
        EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("data: "), HasSubstr("all_reduce #2"),
                                             HasSubstr("400000 bytes"), HasSubstr("ranks 1, 3")));
        // A failed communicator stays failed.
        EXPECT_FALSE(data.Barrier(stream).Wait().ok());
      },
      absl::Milliseconds(300));
}

void Until(steady_clock::time_point time) {
  while (steady_clock::now() < time) std::this_thread::yield();
}

// Case: eight buckets queued on a slow network, the last one's time over before it could begin.
TEST_P(CollectiveErrors, TheDeadlineOfAnOperationCountsFromItsStart) {
  RunRanks(
      GetParam(), 2,
      [&](Communicator& data) {
        Stream stream;
        ASSERT_TRUE(data.Barrier(stream).Wait().ok());
        const auto start = steady_clock::now();
        std::vector<float> a(10), b(10);
        if (data.rank() == 1) Until(start + std::chrono::milliseconds(1300));
        Work first = data.AllReduce(ViewOf(a), ReduceOp::kSum, stream);
        if (data.rank() == 1) Until(start + std::chrono::milliseconds(2600));
        Work second = data.AllReduce(ViewOf(b), ReduceOp::kSum, stream);
        EXPECT_EQ(first.Wait(), absl::OkStatus());
        EXPECT_EQ(second.Wait(), absl::OkStatus());
      },
      absl::Seconds(2));
}

TEST_P(CollectiveErrors, AnOperationMayBeGivenMoreTimeThanTheOthers) {
  RunRanks(
      GetParam(), 2,
      [&](Communicator& data) {
        Stream stream;
        ASSERT_TRUE(data.Barrier(stream).Wait().ok());
        data.set_timeout(absl::Seconds(60));
        if (data.rank() == 1) Until(steady_clock::now() + std::chrono::milliseconds(900));
        EXPECT_EQ(data.Barrier(stream).Wait(), absl::OkStatus());
      },
      absl::Milliseconds(500));
}

TEST_P(CollectiveErrors, RanksThatEnterDifferentOperationsAreBothNamed) {
  RunRanks(GetParam(), 3, [&](Communicator& data) {
    Stream stream;
    std::vector<float> in(3000, 1), out(1000);
    const absl::Status status =
        data.rank() == 2
            ? data.ReduceScatter(ViewOf(in), ViewOf(out), ReduceOp::kSum, stream).Wait()
            : data.AllReduce(ViewOf(in), ReduceOp::kSum, stream).Wait();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("rank 2"), HasSubstr("all_reduce #1"),
                                         HasSubstr("reduce_scatter #1")));
  });
}

TEST_P(CollectiveErrors, SizesThatDifferAreBothNamed) {
  for (const auto& [small, large] : {std::pair<int64_t, int64_t>{10, 20},
                                     {10, 100000},
                                     {100000, 10},
                                     {100000, 100001},
                                     {100000, 5000000}}) {
    RunRanks(GetParam(), 2, [&, small = small, large = large](Communicator& data) {
      Stream stream;
      std::vector<float> io(data.rank() == 0 ? small : large, 1);
      const absl::Status status = data.AllReduce(ViewOf(io), ReduceOp::kSum, stream).Wait();
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
      EXPECT_THAT(MessageOf(status), AllOf(HasSubstr(fmt::format("{} bytes", 4 * small)),
                                           HasSubstr(fmt::format("{} bytes", 4 * large))));
    });
  }
}

TEST_P(CollectiveErrors, RootsTypesAndReductionsMustAgree) {
  RunRanks(GetParam(), 2, [&](Communicator& data) {
    Stream stream;
    std::vector<float> io(8, 1);
    EXPECT_THAT(MessageOf(data.Broadcast(ViewOf(io), data.rank(), stream).Wait()),
                AllOf(HasSubstr("root 0"), HasSubstr("root 1")));
  });
  RunRanks(GetParam(), 2, [&](Communicator& data) {
    Stream stream;
    std::vector<float> io(8, 1);
    const ReduceOp op = data.rank() == 0 ? ReduceOp::kSum : ReduceOp::kMax;
    EXPECT_THAT(MessageOf(data.AllReduce(ViewOf(io), op, stream).Wait()),
                AllOf(HasSubstr("sum"), HasSubstr("max")));
  });
}

TEST_P(CollectiveErrors, AReceiveOfAnotherSizeNamesBoth) {
  RunRanks(GetParam(), 2, [&](Communicator& data) {
    Stream stream;
    std::vector<float> io(data.rank() == 0 ? 70000 : 50000, 1);
    if (data.rank() == 0) {
      (void)data.Send(ViewOf(io), 1, stream).Wait();
    } else {
      EXPECT_THAT(MessageOf(data.Recv(ViewOf(io), 0, stream).Wait()),
                  AllOf(HasSubstr("280000 bytes"), HasSubstr("200000 bytes")));
    }
  });
}

TEST_P(CollectiveErrors, AbortEndsTheOperationsOfEveryRank) {
  std::atomic<int> passed{0};
  RunRanks(GetParam(), 3, [&](Communicator& data) {
    Stream stream;
    std::vector<float> io(100000, 1), other(10);
    ASSERT_TRUE(data.Barrier(stream).Wait().ok());
    ++passed;
    const auto start = steady_clock::now();
    if (data.rank() == 0) {
      while (passed.load() < 3) std::this_thread::yield();
      data.Abort(absl::ResourceExhaustedError("the loss is not a number at step 7"));
      data.Abort(absl::InternalError("a second reason changes nothing"));
    } else {
      Work first = data.AllReduce(ViewOf(io), ReduceOp::kSum, stream);
      Work second = data.AllReduce(ViewOf(other), ReduceOp::kSum, stream);
      for (Work* work : {&first, &second}) {
        const absl::Status status = work->Wait();
        EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
        EXPECT_THAT(MessageOf(status),
                    AllOf(HasSubstr("rank 0"), HasSubstr("the loss is not a number at step 7")));
      }
    }
    EXPECT_THAT(MessageOf(data.Barrier(stream).Wait()), HasSubstr("not a number"));
    EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(2));
  });
}

TEST_P(CollectiveErrors, ARankThatLeavesIsNamedAtOnce) {
  // What it had sent before still arrives: the barrier passes.
  RunRanks(GetParam(), 3, [&](Communicator& data) {
    Stream stream;
    std::vector<float> io(100000, 1);
    ASSERT_TRUE(data.Barrier(stream).Wait().ok());
    if (data.rank() == 1) return;
    const auto start = steady_clock::now();
    const absl::Status status = data.AllReduce(ViewOf(io), ReduceOp::kSum, stream).Wait();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(MessageOf(status), HasSubstr("rank 1"));
    EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(2));
  });
}

TEST_P(CollectiveErrors, ACommunicatorMayCloseWithOperationsPending) {
  RunRanks(GetParam(), 2, [&](Communicator& data) {
    Stream stream;
    static std::vector<float> io(100000, 1);
    if (data.rank() == 0) (void)data.Recv(ViewOf(io), 1, stream);
  });
}

INSTANTIATE_TEST_SUITE_P(, CollectiveErrors, testing::ValuesIn(Backends()));

TEST(Inproc, AKilledRankFailsItsPeers) {
  InprocHub hub(3);
  InThreads(3, [&](int64_t rank) {
    const auto data = hub.Make(rank, Everybody(3));
    Stream stream;
    std::vector<float> io(100000, 1);
    ASSERT_TRUE(data->Barrier(stream).Wait().ok());
    if (rank == 2) return hub.Kill(2);
    const absl::Status status = data->AllReduce(ViewOf(io), ReduceOp::kSum, stream).Wait();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(MessageOf(status), HasSubstr("rank 2"));
  });
}

TEST(Inproc, AGroupThatIsNoneIsRefused) {
  InprocHub hub(3);
  EXPECT_EQ(hub.transport(0).MakeCommunicator({.name = "x", .ranks = {1, 2}}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(hub.transport(1).MakeCommunicator({.name = "x", .ranks = {1, 1}}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace mega::distributed
