// Single-thread speed of every op at the shapes a small language model trains with, as FLOP/s or
// bytes/s and as a share of the peak measured in the same run.
#include <cmath>

#include "benchmark/benchmark.h"
#include "kernels/activation.h"
#include "kernels/adamw.h"
#include "kernels/attention.h"
#include "kernels/cross_entropy.h"
#include "kernels/elementwise.h"
#include "kernels/matmul.h"
#include "kernels/philox.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include "tests/bench/kernels/peak.h"
#include "tests/kernels/attention_shapes.h"
#include "tests/support/tensors.h"

namespace mega::kernels {
namespace {

using testing::HostTensor;

void ReportFlops(benchmark::State& state, double flops) {
  const double rate = flops * static_cast<double>(state.iterations());
  state.counters["FLOP/s"] = benchmark::Counter(rate, benchmark::Counter::kIsRate);
  state.counters["of_peak"] = benchmark::Counter(rate / PeakFlops(), benchmark::Counter::kIsRate);
}

void ReportBytes(benchmark::State& state, int64_t elements) {
  const double bytes = 4.0 * static_cast<double>(elements * state.iterations());
  state.counters["bytes/s"] = benchmark::Counter(bytes, benchmark::Counter::kIsRate);
  state.counters["of_copy"] =
      benchmark::Counter(bytes / PeakCopyBytes(), benchmark::Counter::kIsRate);
}

// T, I, O
void LinearShapes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"T", "I", "O"});
  for (const int64_t T : {1024, 2048, 4096}) b->Args({T, 256, 256});
  for (const auto& [I, O] : {std::pair{128, 384},
                             {256, 768},
                             {384, 1152},
                             {256, 1024},
                             {512, 256},
                             {688, 256},
                             {256, 1376},
                             {384, 256}})
    b->Args({2048, I, O});
}

enum class Pass { kForward, kInput, kWeight };

void BM_Linear(benchmark::State& state, Pass pass) {
  Stream stream({}, 1);
  const int64_t T = state.range(0), I = state.range(1), O = state.range(2);
  HostTensor x = HostTensor::Random({T, I}, 1), w = HostTensor::Random({O, I}, 2);
  HostTensor y = HostTensor::Random({T, O}, 3);
  for (auto _ : state) {
    if (pass == Pass::kForward) LinearForward(stream, x, w, y);
    if (pass == Pass::kInput) LinearBackwardInput(stream, y, w, x);
    if (pass == Pass::kWeight) LinearBackwardWeight(stream, y, x, w);
  }
  ReportFlops(state, 2.0 * static_cast<double>(T * I * O));
}
BENCHMARK_CAPTURE(BM_Linear, forward, Pass::kForward)->Apply(LinearShapes);
BENCHMARK_CAPTURE(BM_Linear, input, Pass::kInput)->Apply(LinearShapes);
BENCHMARK_CAPTURE(BM_Linear, weight, Pass::kWeight)->Apply(LinearShapes);

void AttentionShapes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"B", "S", "K", "N", "G", "H", "V"});
  for (const AttentionSizes& s : TrainingAttention()) b->Args({s.B, s.S, s.K, s.N, s.G, s.H, s.V});
}

// FLOPs of the pairs that a causal mask leaves; forward has 2 products, backward 5.
void BM_Attention(benchmark::State& state, bool backward) {
  Stream stream({}, 1);
  const int64_t B = state.range(0), S = state.range(1), K = state.range(2), N = state.range(3);
  const int64_t G = state.range(4), H = state.range(5), V = state.range(6);
  HostTensor q = HostTensor::Random({B, S, N, H}, 1), k = HostTensor::Random({B, K, G, H}, 2);
  HostTensor v = HostTensor::Random({B, K, G, V}, 3), dout = HostTensor::Random({B, S, N, V}, 4);
  HostTensor o({B, S, N, V}), lse({B, N, S}), dq(q.shape()), dk(k.shape()), dv(v.shape());
  const float scale = 1 / std::sqrt(static_cast<float>(H));
  AttentionForward(stream, q, k, v, scale, {}, o, lse);
  for (auto _ : state) {
    if (backward)
      AttentionBackward(stream, q, k, v, o, lse, dout, scale, {}, dq, dk, dv);
    else
      AttentionForward(stream, q, k, v, scale, {}, o, lse);
  }
  const auto pairs = static_cast<double>(B * N * S * (S + 1) / 2);
  ReportFlops(state, 2 * pairs * static_cast<double>(backward ? 3 * H + 2 * V : H + V));
}
BENCHMARK_CAPTURE(BM_Attention, forward, false)->Apply(AttentionShapes);
BENCHMARK_CAPTURE(BM_Attention, backward, true)->Apply(AttentionShapes);

// T, D
void RowShapes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"T", "D"})->Args({1024, 128})->Args({2048, 256})->Args({4096, 384});
}

void BM_RmsNorm(benchmark::State& state) {
  Stream stream({}, 1);
  const int64_t T = state.range(0), D = state.range(1);
  HostTensor x = HostTensor::Random({T, D}, 1), gamma = HostTensor::Random({D}, 2);
  HostTensor y({T, D}), rstd({T});
  for (auto _ : state) RmsNorm(stream, x, gamma, y, rstd, 1e-5f);
  ReportBytes(state, 2 * T * D);
}
BENCHMARK(BM_RmsNorm)->Apply(RowShapes);

void BM_RmsNormBackward(benchmark::State& state) {
  Stream stream({}, 1);
  const int64_t T = state.range(0), D = state.range(1);
  HostTensor x = HostTensor::Random({T, D}, 1), gamma = HostTensor::Random({D}, 2);
  HostTensor dy = HostTensor::Random({T, D}, 3), rstd = HostTensor::Random({T}, 4);
  HostTensor dx = HostTensor::Zeros({T, D}), dgamma = HostTensor::Zeros({D});
  for (auto _ : state) {
    RmsNormBackwardInput(stream, dy, x, gamma, rstd, dx, false);
    RmsNormBackwardWeight(stream, dy, x, rstd, dgamma);
  }
  ReportBytes(state, 5 * T * D);
}
BENCHMARK(BM_RmsNormBackward)->Apply(RowShapes);

void BM_SwiGlu(benchmark::State& state) {
  Stream stream({}, 1);
  const int64_t T = state.range(0), F = 2 * state.range(1);
  HostTensor x = HostTensor::Random({T, 2 * F}, 1), y({T, F});
  for (auto _ : state) SwiGlu(stream, x, y);
  ReportBytes(state, 3 * T * F);
}
BENCHMARK(BM_SwiGlu)->Apply(RowShapes);

void BM_SwiGluBackward(benchmark::State& state) {
  Stream stream({}, 1);
  const int64_t T = state.range(0), F = 2 * state.range(1);
  HostTensor x = HostTensor::Random({T, 2 * F}, 1), dy = HostTensor::Random({T, F}, 2);
  HostTensor dx({T, 2 * F});
  for (auto _ : state) SwiGluBackward(stream, dy, x, dx);
  ReportBytes(state, 5 * T * F);
}
BENCHMARK(BM_SwiGluBackward)->Apply(RowShapes);

void BM_Rope(benchmark::State& state) {
  Stream stream({}, 1);
  const int64_t T = state.range(0), D = state.range(1), H = 32;
  HostTensor x = HostTensor::Random({T, D / H, H}, 1), cos({T, H / 2}), sin({T, H / 2});
  std::vector<int32_t> positions(T);
  for (int64_t t = 0; t < T; ++t) positions[t] = static_cast<int32_t>(t);
  RopeTable(stream, positions, 1e4, cos, sin);
  HostTensor rows = HostTensor::Of(positions);
  for (auto _ : state) RopeForward(stream, x, rows, cos, sin, RopeStyle::kHalf);
  ReportBytes(state, 2 * T * D);
}
BENCHMARK(BM_Rope)->Apply(RowShapes);

void BM_CrossEntropy(benchmark::State& state) {
  Stream stream({}, 1);
  const int64_t T = state.range(0), V = 256;
  HostTensor logits = HostTensor::Random({T, V}, 1), loss({T}), lse({T}), dlogits({T, V});
  HostTensor labels = HostTensor::Of(std::vector<int32_t>(T, 3));
  for (auto _ : state) {
    CrossEntropyForward(stream, logits, labels, loss, lse);
    CrossEntropyBackward(stream, logits, labels, lse, 1, dlogits);
  }
  ReportBytes(state, 3 * T * V);
}
BENCHMARK(BM_CrossEntropy)->ArgName("T")->Arg(2048)->Arg(4096);

void BM_AdamW(benchmark::State& state) {
  Stream stream({}, 1);
  const int64_t n = state.range(0);
  HostTensor p = HostTensor::Random({n}, 1), g = HostTensor::Random({n}, 2);
  HostTensor m = HostTensor::Zeros({n}), v = HostTensor::Zeros({n});
  for (auto _ : state) AdamW(stream, {.lr = 1e-3, .weight_decay = 0.1}, p, g, m, v);
  ReportBytes(state, 7 * n);
}
BENCHMARK(BM_AdamW)->ArgName("n")->Arg(1 << 16)->Arg(1 << 22);

void BM_SumOfSquares(benchmark::State& state) {
  Stream stream({}, 1);
  HostTensor x = HostTensor::Random({state.range(0)}, 1);
  for (auto _ : state) benchmark::DoNotOptimize(SumOfSquares(stream, x));
  ReportBytes(state, state.range(0));
}
BENCHMARK(BM_SumOfSquares)->ArgName("n")->Arg(1 << 16)->Arg(1 << 22);

void BM_FillNormal(benchmark::State& state) {
  Stream stream({}, 1);
  HostTensor x({state.range(0)});
  const int64_t offset[] = {0};
  for (auto _ : state) FillNormal(stream, x, x.shape(), offset, 1, 2, 0, 1);
  state.counters["elements/s"] = benchmark::Counter(
      static_cast<double>(state.range(0) * state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(BM_FillNormal)->ArgName("n")->Arg(1 << 20);

}  // namespace
}  // namespace mega::kernels
