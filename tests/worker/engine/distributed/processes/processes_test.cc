#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <cstring>

#include "absl/strings/numbers.h"
#include "base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/engine/distributed/processes/rank_processes.h"
#include "tests/worker/engine/distributed/ranks.h"

namespace mega::distributed {
namespace {

using testing::HasSubstr;

TensorView ViewOf(std::vector<float>& values) {
  return TensorView(values.data(), DType::kF32, Shape{static_cast<int64_t>(values.size())});
}

// Sums of every size, as a hash of their bits.
std::string HashOfSums(Communicator& data) {
  Stream stream;
  uint64_t hash = 0;
  for (const int64_t size : {0, 1, 7, 1023, 1025, 262144, (1 << 20) + 3}) {
    std::vector<float> io(size);
    for (int64_t i = 0; i < size; ++i)
      io[i] = std::sin(static_cast<float>(i * 7 + data.rank())) * std::ldexp(1.0f, i % 20);
    const absl::Status status = data.AllReduce(ViewOf(io), ReduceOp::kSum, stream).Wait();
    if (!status.ok()) return status.ToString();
    for (const float value : io) {
      uint32_t bits;
      std::memcpy(&bits, &value, sizeof(bits));
      hash = (hash ^ bits) * 0x100000001b3;
    }
  }
  return std::to_string(hash);
}

TEST(Processes, GiveTheBitsOfThreads) {
  for (const int64_t ranks : {1, 2, 5}) {
    RankProcesses processes(ranks, absl::Seconds(60),
                            [](Communicator& data, const RankProcesses::Report& report) {
                              report.Line(HashOfSums(data));
                            });
    std::vector<std::string> of_threads(ranks), of_processes;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      of_processes.push_back(processes.Line(rank));
      processes.Reap(rank);
    }
    InprocHub hub(ranks);
    InThreads(ranks, [&](int64_t rank) {
      of_threads[rank] = HashOfSums(*hub.Make(rank, Everybody(ranks)));
    });
    EXPECT_EQ(of_processes, of_threads);
    EXPECT_THAT(of_processes, testing::Each(of_threads[0]));
  }
}

double Seconds() { return absl::ToDoubleSeconds(SystemClock().BootNow()); }

// Rank 2 never comes; the others report how their operation ended, and when.
void WaitForRankTwo(Communicator& data, const RankProcesses::Report& report) {
  Stream stream;
  std::vector<float> io(1 << 20, 1);
  if (!data.Barrier(stream).Wait().ok()) return;
  if (data.rank() == 2) {
    report.Line("ready");
    while (true) pause();
  }
  const absl::Status status = data.AllReduce(ViewOf(io), ReduceOp::kSum, stream).Wait();
  report.Line(std::to_string(Seconds()));
  report.Line(status.ToString());
}

void ExpectRankTwoIsNamed(RankProcesses& processes, double since, double within) {
  for (const int64_t rank : {0, 1}) {
    double ended = 0;
    ASSERT_TRUE(absl::SimpleAtod(processes.Line(rank), &ended));
    EXPECT_LT(ended - since, within);
    EXPECT_THAT(processes.Line(rank), HasSubstr("rank 2"));
    processes.Reap(rank);
  }
}

TEST(Processes, AKilledRankIsNamedWithinASecond) {
  RankProcesses processes(3, absl::Seconds(60), WaitForRankTwo);
  ASSERT_EQ(processes.Line(2), "ready");
  const double killed = Seconds();
  processes.Signal(2, SIGKILL);
  processes.Reap(2);
  ExpectRankTwoIsNamed(processes, killed, 1.0);
}

TEST(Processes, AKilledRankIsNamedBeforeItIsReaped) {
  RankProcesses processes(3, absl::Seconds(60), WaitForRankTwo);
  ASSERT_EQ(processes.Line(2), "ready");
  const double killed = Seconds();
  processes.Signal(2, SIGKILL);
  ExpectRankTwoIsNamed(processes, killed, 1.0);
}

TEST(Processes, AStoppedRankIsNamedAtTheDeadline) {
  RankProcesses processes(3, absl::Milliseconds(700), WaitForRankTwo);
  ASSERT_EQ(processes.Line(2), "ready");
  const double stopped = Seconds();
  processes.Signal(2, SIGSTOP);
  ExpectRankTwoIsNamed(processes, stopped, 4.0);
}

}  // namespace
}  // namespace mega::distributed
