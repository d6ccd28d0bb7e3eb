// Sum over ranks in processes of their own, as training does it. Bytes/s is the size of the buffer
// over the time of one all-reduce (algorithm bandwidth); "of_copy" is its share of what one thread
// copies in the same process.
#include <chrono>
#include <cstring>

#include "absl/strings/numbers.h"
#include "benchmark/benchmark.h"
#include "tests/worker/engine/distributed/processes/rank_processes.h"

namespace mega::distributed {
namespace {

using std::chrono::steady_clock;

double SecondsSince(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

void BM_AllReduce(benchmark::State& state) {
  const int64_t ranks = state.range(0), bytes = state.range(1);
  const int rounds =
      static_cast<int>(std::max<int64_t>(10, (int64_t{256} << 20) / (bytes + 65536)));
  double copy_seconds = 0;
  for (auto _ : state) {
    RankProcesses processes(ranks, absl::Seconds(60),
                            [&](Communicator& data, const RankProcesses::Report& report) {
                              Stream stream;
                              std::vector<float> io(bytes / sizeof(float), 1), copy(io.size());
                              const TensorView view(io.data(), DType::kF32, Shape{bytes / 4});
                              steady_clock::time_point start;
                              for (int round = -3; round < rounds; ++round) {
                                if (round == 0) start = steady_clock::now();
                                if (!data.AllReduce(view, ReduceOp::kSum, stream).Wait().ok())
                                  return;
                              }
                              report.Line(fmt::format("{}", SecondsSince(start) / rounds));
                              if (!data.Barrier(stream).Wait().ok()) return;
                              start = steady_clock::now();
                              for (int round = 0; round < rounds && data.rank() == 0; ++round) {
                                std::memcpy(copy.data(), io.data(), bytes);
                                benchmark::DoNotOptimize(copy.data());
                                benchmark::ClobberMemory();
                              }
                              report.Line(fmt::format("{}", SecondsSince(start) / rounds));
                            });
    double seconds = 0;
    if (!absl::SimpleAtod(processes.Line(0), &seconds) ||
        !absl::SimpleAtod(processes.Line(0), &copy_seconds)) {
      state.SkipWithError("a rank failed");
      return;
    }
    state.SetIterationTime(seconds);
    state.counters["of_copy"] = copy_seconds / seconds;
  }
  state.SetBytesProcessed(state.iterations() * bytes);
}
BENCHMARK(BM_AllReduce)
    ->ArgNames({"ranks", "bytes"})
    ->ArgsProduct({{2, 4}, {4, 4096, 65536, 1 << 20, 16 << 20}})
    ->UseManualTime()
    ->Iterations(3)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace mega::distributed
