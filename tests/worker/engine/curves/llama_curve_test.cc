// 50 steps of a Hugging Face Llama under torch's AdamW (tests/data/curves/README.md: how they were
// made, and the tolerances), with the batch cut over ranks as threads and over micro-batches.
#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/engine/harness/reference.h"
#include "tests/worker/engine/harness/tiny.h"
#include "worker/engine/distributed/grad_buffer.h"
#include "worker/engine/distributed/inproc.h"
#include "worker/engine/models/decoder.h"
#include "worker/engine/optimizer/adamw.h"
#include "worker/engine/pipeline_parallel/executor.h"

namespace mega {
namespace {

using testing::Batch;
using testing::Reference;
using testing::Rel;

struct Curve {
  std::vector<double> loss, grad_norm;
  std::vector<std::vector<float>> weights;  // after the last step, one for each HfTensors entry
};

struct Data {
  Data() {
    const auto& h = curve.at("hyperparameters");
    optimizer.set_schedule("cosine");
    optimizer.set_lr(h.at("max_lr"));
    optimizer.set_min_lr(h.at("min_lr"));
    optimizer.set_warmup_steps(h.at("warmup"));
    optimizer.set_weight_decay(h.at("weight_decay"));
    optimizer.set_beta1(h.at("beta1"));
    optimizer.set_beta2(h.at("beta2"));
    optimizer.set_eps(h.at("eps"));
    optimizer.set_clip_grad(h.at("clip"));
    steps = h.at("steps");
    batch = h.at("batch");
    seq = h.at("seq");
  }
  // Rows [begin, begin + count) of a step's batch.
  Batch Rows(Pool& pool, int64_t step, int64_t begin, int64_t count) const {
    std::vector<int32_t> in, out;
    for (int64_t b = begin; b < begin + count; ++b) {
      const int32_t* row = tokens.data() + ((step - 1) * batch + b) * (seq + 1);
      in.insert(in.end(), row, row + seq);
      out.insert(out.end(), row + 1, row + seq + 1);
    }
    return Batch(pool, count, seq, in, out);
  }

  nlohmann::json curve = testing::ReadJson("curves/llama/curve.json");
  planner::ModelSpec spec = testing::SpecOf("curves/llama/config.json");
  Reference initial{"curves/llama/model.safetensors"};
  Reference final{"curves/llama/final.safetensors"};
  std::vector<int32_t> tokens =
      Reference("curves/llama/tokens.safetensors").Values<int32_t>("tokens");
  v1::Optimizer optimizer;
  int64_t steps = 0, batch = 0, seq = 0;
};

// One rank's run; the losses are this rank's share.
Curve TrainRank(const Data& data, int64_t rank, int64_t ranks, int64_t micro_batches,
                distributed::Communicator* communicator) {
  Stream stream(Device{}, 1);
  Pool pool(Device{});
  models::Decoder model(data.spec, {}, pool, stream);
  distributed::GradBuffer grads(pool, model.parameters(), 3, communicator, /*overlap=*/true);
  model.set_grad_ready_hook(
      [&](const distributed::Parameter& parameter) { grads.MarkReady(parameter, stream); });
  MEGA_CHECK_OK(models::LoadHf(data.spec, data.initial.source(), model.parameters()));
  auto adamw =
      optimizer::AdamW::Make(data.optimizer, data.steps, model.parameters(), pool, stream).value();
  v1::ScheduleSpec schedule;
  schedule.set_kind("1f1b");
  schedule.set_stages(1);
  schedule.set_virtual_stages(1);
  profiler::PhaseTimer timer;
  pipeline_parallel::Executor executor(model, schedule, 0, nullptr, timer);

  const int64_t rows = data.batch / ranks / micro_batches;
  const double batch_tokens = static_cast<double>(data.batch * data.seq);
  model.set_loss_scale(static_cast<float>(1 / batch_tokens));
  Curve curve;
  int64_t allocations = 0;
  for (int64_t step = 1; step <= data.steps; ++step) {
    std::vector<Batch> batches;
    std::vector<transformer::MicroBatch> views;
    for (int64_t m = 0; m < micro_batches; ++m)
      batches.push_back(data.Rows(pool, step, (rank * micro_batches + m) * rows, rows));
    for (const Batch& batch : batches) views.push_back(batch.view());
    grads.Zero(stream);
    MEGA_CHECK_OK(executor.RunStep(views, {.reduce_grads = [&] { return grads.Finish(stream); },
                                           .step =
                                               [&] {
                                                 const auto result = adamw.Step(step, 1);
                                                 if (result.ok())
                                                   curve.grad_norm.push_back(result->grad_norm);
                                                 return result.status();
                                               }}));
    curve.loss.push_back(model.TakeLoss().sum / batch_tokens);
    MEGA_CHECK_EQ(pool.UsageOf(Purpose::kActivations).bytes, 0);
    if (step == 2) allocations = pool.device_allocations();
  }
  EXPECT_EQ(pool.device_allocations(), allocations) << "memory was taken after step 2";
  for (const models::HfTensor& tensor : models::HfTensors(data.spec))
    curve.weights.push_back(models::ExportHf(tensor, model.Find(tensor.ours)->value));
  return curve;
}

// All ranks; losses added up, the rest as rank 0 has it after checking that all agree to the bit.
Curve Train(const Data& data, int64_t ranks, int64_t micro_batches) {
  std::vector<Curve> curves(ranks);
  if (ranks == 1) {
    curves[0] = TrainRank(data, 0, 1, micro_batches, nullptr);
  } else {
    distributed::InprocHub hub(ranks);
    std::vector<int64_t> group;
    for (int64_t rank = 0; rank < ranks; ++rank) group.push_back(rank);
    std::vector<std::jthread> threads;
    for (int64_t rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        const auto communicator = hub.Make(rank, {.name = "data", .ranks = group});
        curves[rank] = TrainRank(data, rank, ranks, micro_batches, communicator.get());
      });
  }
  Curve total = curves[0];
  for (int64_t rank = 1; rank < ranks; ++rank) {
    EXPECT_EQ(curves[rank].grad_norm, total.grad_norm);
    EXPECT_EQ(curves[rank].weights, total.weights) << "rank " << rank << " has drifted";
    for (size_t i = 0; i < total.loss.size(); ++i) total.loss[i] += curves[rank].loss[i];
  }
  return total;
}

class LlamaCurve : public ::testing::TestWithParam<std::pair<int64_t, int64_t>> {};

TEST_P(LlamaCurve, FollowsTorchForFiftySteps) {
  const auto [ranks, micro_batches] = GetParam();
  const Data data;
  const Curve curve = Train(data, ranks, micro_batches);
  for (int64_t i = 0; i < data.steps; ++i) {
    EXPECT_NEAR(curve.loss[i], data.curve.at("loss_f64").at(i), 1e-4) << "step " << i + 1;
    const double norm = data.curve.at("grad_norm_f64").at(i);
    EXPECT_NEAR(curve.grad_norm[i], norm, 2e-3 * norm) << "step " << i + 1;
  }
  const std::vector<models::HfTensor> tensors = models::HfTensors(data.spec);
  for (size_t i = 0; i < tensors.size(); ++i)
    EXPECT_LT(Rel(curve.weights[i], data.final.Values<float>(tensors[i].name)), 1e-3)
        << tensors[i].name;
}

INSTANTIATE_TEST_SUITE_P(Layouts, LlamaCurve,
                         ::testing::Values(std::pair(1, 1), std::pair(1, 2), std::pair(1, 8),
                                           std::pair(2, 1), std::pair(2, 2), std::pair(4, 1),
                                           std::pair(4, 2)),
                         [](const auto& info) {
                           return fmt::format("{}Ranks{}MicroBatches", info.param.first,
                                              info.param.second);
                         });

// The layouts also agree among themselves, much closer than with another library.
TEST(LlamaCurves, RanksOnlyChangeRounding) {
  const Data data;
  const Curve one = Train(data, 1, 1);
  for (const int64_t ranks : {2, 4}) {
    const Curve many = Train(data, ranks, 1);
    for (int64_t i = 0; i < data.steps; ++i)
      EXPECT_NEAR(many.loss[i], one.loss[i], 1e-5 * one.loss[i]) << "step " << i + 1;
  }
}

}  // namespace
}  // namespace mega
