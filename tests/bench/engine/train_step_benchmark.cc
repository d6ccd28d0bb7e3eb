// One training step of a rank, one thread: forward, backward, clip and AdamW of a Llama-style byte
// model. Reports tokens/s, model FLOP/s by the project's one formula, and its share of the measured
// peak (MFU).
#include <cstdint>

#include "benchmark/benchmark.h"
#include "coordinator/planner/model/model_spec.h"
#include "tests/worker/engine/harness/tiny.h"
#include "worker/engine/optimizer/adamw.h"
#include "worker/engine/pipeline_parallel/executor.h"
#include "worker/engine/profiler/peak_flops.h"

namespace mega {
namespace {

struct Shape {
  int64_t layers, hidden, heads, groups, ffn, vocab, seq, rows;
};

planner::ModelSpec SpecOf(const Shape& shape) {
  return {.num_layers = shape.layers,
          .hidden_size = shape.hidden,
          .ffn_hidden_size = shape.ffn,
          .num_attention_heads = shape.heads,
          .num_query_groups = shape.groups,
          .head_dim = shape.hidden / shape.heads,
          .vocab_size = shape.vocab,
          .max_position_embeddings = shape.seq};
}

void TrainStep(benchmark::State& state, const Shape& shape) {
  testing::TinyModel tiny(SpecOf(shape));
  v1::Optimizer options;
  options.set_schedule("constant");
  options.set_lr(1e-4);
  options.set_beta1(0.9);
  options.set_beta2(0.95);
  options.set_eps(1e-8);
  options.set_weight_decay(0.1);
  options.set_clip_grad(1);
  auto adamw =
      optimizer::AdamW::Make(options, 1 << 20, tiny.model.parameters(), tiny.pool, tiny.stream)
          .value();
  v1::ScheduleSpec schedule;
  schedule.set_kind("1f1b");
  schedule.set_stages(1);
  schedule.set_virtual_stages(1);
  profiler::PhaseTimer timer;
  pipeline_parallel::Executor executor(tiny.model, schedule, 0, nullptr, timer);
  const testing::Batch batch =
      testing::Batch::Random(tiny.pool, shape.rows, shape.seq, shape.vocab, 1);
  const transformer::MicroBatch micro_batch = batch.view();
  const int64_t tokens = shape.rows * shape.seq;
  tiny.model.set_loss_scale(1.0f / static_cast<float>(tokens));
  const double peak = profiler::MeasurePeakFlops(tiny.stream);

  int64_t step = 0;
  const auto run = [&] {
    tiny.grads.Zero(tiny.stream);
    MEGA_CHECK_OK(executor.RunStep({&micro_batch, 1},
                                   {.reduce_grads = [] { return absl::OkStatus(); },
                                    .step = [&] { return adamw.Step(++step, 1).status(); }}));
  };
  run();
  run();
  timer.Take();
  for (auto _ : state) run();

  const double steps = static_cast<double>(state.iterations());
  const double flops = planner::FlopsPerToken(tiny.model.spec(), shape.seq) * tokens;
  using benchmark::Counter;
  state.counters["tokens/s"] = Counter(steps * tokens, Counter::kIsRate);
  state.counters["FLOP/s"] = Counter(steps * flops, Counter::kIsRate);
  state.counters["of_peak"] = Counter(steps * flops / peak, Counter::kIsRate);
  state.counters["forward_ms"] = timer.seconds(profiler::Phase::kForward) / steps * 1e3;
  state.counters["backward_ms"] = timer.seconds(profiler::Phase::kBackward) / steps * 1e3;
  state.counters["optimizer_ms"] = timer.seconds(profiler::Phase::kOptimizer) / steps * 1e3;
}

void Register(const char* name, const Shape& shape) {
  benchmark::RegisterBenchmark(name, [shape](benchmark::State& state) { TrainStep(state, shape); })
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
}

const bool kRegistered = [] {
  Register("BM_TrainStep/bytes_6x256", {6, 256, 8, 4, 704, 256, 256, 8});
  Register("BM_TrainStep/bytes_4x192", {4, 192, 6, 6, 512, 256, 256, 8});
  Register("BM_TrainStep/vocab_32k", {4, 256, 8, 4, 704, 32000, 256, 4});
  return true;
}();

}  // namespace
}  // namespace mega
