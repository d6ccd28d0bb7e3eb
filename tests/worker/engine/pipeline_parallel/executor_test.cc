#include "worker/engine/pipeline_parallel/executor.h"

#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/engine/harness/tiny.h"

namespace mega::pipeline_parallel {
namespace {

using testing::Batch;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using testing::TinyModel;
using testing::TinySpec;
using transformer::MicroBatch;

v1::ScheduleSpec OneFOneB(int64_t stages) {
  v1::ScheduleSpec spec;
  spec.set_kind("1f1b");
  spec.set_stages(stages);
  spec.set_virtual_stages(1);
  return spec;
}

// Writes down what it is asked.
class FakeStage : public transformer::Stage {
 public:
  void BeginStep(const transformer::StepMode& mode) override {
    calls.push_back(
        fmt::format("begin {} {}", mode.forward_only ? "evaluate" : "train", mode.last_backward));
  }
  Tensor Forward(int64_t m, const MicroBatch& batch, Tensor) override {
    calls.push_back(fmt::format("F{} {}", m, batch.tokens_BS.dim(0)));
    return {};
  }
  Tensor BackwardInput(int64_t m, Tensor) override {
    calls.push_back(fmt::format("B{}", m));
    return {};
  }
  void BackwardWeight(int64_t m) override { calls.push_back(fmt::format("W{}", m)); }

  std::vector<std::string> calls;
};

// Micro-batch m has m + 1 rows, so that a mix-up shows.
std::vector<MicroBatch> Rows(int64_t count) {
  std::vector<MicroBatch> batches(count);
  for (int64_t m = 0; m < count; ++m)
    batches[m].tokens_BS = TensorView(nullptr, DType::kI32, Shape({m + 1, 1}));
  return batches;
}

TEST(Executor, RunsTheScheduleWithReductionAndStepLast) {
  FakeStage stage;
  profiler::PhaseTimer timer;
  Executor executor(stage, OneFOneB(1), 0, nullptr, timer);
  const auto note = [&](const std::string& what) {
    return [&stage, what] {
      stage.calls.push_back(what);
      return absl::OkStatus();
    };
  };
  const absl::Status status =
      executor.RunStep(Rows(2), {.reduce_grads = note("reduce"), .step = note("step")});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(stage.calls, ElementsAre("begin train 1", "F0 1", "B0", "W0", "F1 2", "B1", "W1",
                                       "reduce", "step"));
}

TEST(Executor, TheNumberOfMicroBatchesMayChange) {
  FakeStage stage;
  profiler::PhaseTimer timer;
  Executor executor(stage, OneFOneB(1), 0, nullptr, timer);
  ASSERT_TRUE(executor.RunStep(Rows(3), {}).ok());
  stage.calls.clear();
  ASSERT_TRUE(executor.RunStep(Rows(1), {}).ok());
  EXPECT_THAT(stage.calls, ElementsAre("begin train 0", "F0 1", "B0", "W0"));
}

TEST(Executor, EvaluationOnlyRunsForward) {
  FakeStage stage;
  profiler::PhaseTimer timer;
  Executor executor(stage, OneFOneB(1), 0, nullptr, timer);
  ASSERT_TRUE(executor.RunForwardOnly(Rows(2)).ok());
  EXPECT_THAT(stage.calls, ElementsAre("begin evaluate -1", "F0 1", "F1 2"));
}

TEST(Executor, AFailedReductionEndsTheStepBeforeTheUpdate) {
  FakeStage stage;
  profiler::PhaseTimer timer;
  Executor executor(stage, OneFOneB(1), 0, nullptr, timer);
  bool stepped = false;
  const absl::Status status =
      executor.RunStep(Rows(1), {.reduce_grads = [] { return Unavailable("rank 3 is gone"); },
                                 .step =
                                     [&] {
                                       stepped = true;
                                       return absl::OkStatus();
                                     }});
  EXPECT_THAT(std::string(status.message()), HasSubstr("rank 3 is gone"));
  EXPECT_FALSE(stepped);
}

TEST(Executor, AStageThatMustTalkNeedsATransport) {
  FakeStage stage;
  profiler::PhaseTimer timer;
  Executor executor(stage, OneFOneB(2), 0, nullptr, timer);
  EXPECT_THAT(std::string(executor.RunStep(Rows(1), {}).message()),
              HasSubstr("no stage transport"));
  EXPECT_TRUE(stage.calls.empty());
}

// Carries values between two stages that are threads with pools of their own.
class Wire {
 public:
  void Put(const std::string& key, TensorView tensor) {
    std::vector<float> values(tensor.ptr<float>(), tensor.ptr<float>() + tensor.elements());
    MutexLock lock(mu_);
    parcels_[key] = {tensor.shape(), std::move(values)};
    changed_.NotifyAll();
  }
  absl::StatusOr<Tensor> Take(const std::string& key, Pool& pool) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    MutexLock lock(mu_);
    while (!parcels_.contains(key))
      if (!changed_.WaitUntil(mu_, deadline)) return Unavailable("{} did not come", key);
    const auto& [shape, values] = parcels_[key];
    Tensor tensor = pool.Allocate(DType::kF32, shape, Purpose::kComm);
    std::memcpy(tensor.view().data(), values.data(), values.size() * sizeof(float));
    parcels_.erase(key);
    return tensor;
  }

 private:
  Mutex mu_;
  CondVar changed_;
  std::map<std::string, std::pair<Shape, std::vector<float>>> parcels_ MEGA_GUARDED_BY(mu_);
};

class WireTransport : public StageTransport {
 public:
  WireTransport(Wire& wire, Pool& pool) : wire_(wire), pool_(pool) {}
  absl::Status SendForward(int64_t m, int64_t, Tensor y) override {
    wire_.Put(fmt::format("y{}", m), y);
    return absl::OkStatus();
  }
  absl::StatusOr<Tensor> RecvForward(int64_t m, int64_t) override {
    return wire_.Take(fmt::format("y{}", m), pool_);
  }
  absl::Status SendBackward(int64_t m, int64_t, Tensor dx) override {
    wire_.Put(fmt::format("dx{}", m), dx);
    return absl::OkStatus();
  }
  absl::StatusOr<Tensor> RecvBackward(int64_t m, int64_t) override {
    return wire_.Take(fmt::format("dx{}", m), pool_);
  }

 private:
  Wire& wire_;
  Pool& pool_;
};

TEST(Executor, TwoStagesGiveTheBitsOfOne) {
  constexpr int64_t kMicroBatches = 4;
  const auto batches_of = [](Pool& pool) {
    std::vector<Batch> batches;
    for (int m = 0; m < kMicroBatches; ++m)
      batches.push_back(Batch::Random(pool, 2, 8, TinySpec().vocab_size, m));
    return batches;
  };
  const auto run = [&](TinyModel& tiny, int64_t stages, int64_t stage, StageTransport* transport) {
    const std::vector<Batch> batches = batches_of(tiny.pool);
    std::vector<MicroBatch> views;
    for (const Batch& batch : batches) views.push_back(batch.view());
    profiler::PhaseTimer timer;
    Executor executor(tiny.model, OneFOneB(stages), stage, transport, timer);
    const absl::Status status = executor.RunStep(views, {});
    EXPECT_TRUE(status.ok()) << status;
  };
  TinyModel whole;
  run(whole, 1, 0, nullptr);

  TinyModel first(TinySpec(), 7, {.num_layers = 1, .has_loss = false});
  TinyModel second(TinySpec(), 7, {.first_layer = 1, .has_embedding = false});
  Wire wire;
  {
    std::jthread other([&] {
      WireTransport transport(wire, second.pool);
      run(second, 2, 1, &transport);
    });
    WireTransport transport(wire, first.pool);
    run(first, 2, 0, &transport);
  }
  std::vector<float> grads = first.grads.Flat();
  const std::vector<float> rest = second.grads.Flat();
  grads.insert(grads.end(), rest.begin(), rest.end());
  EXPECT_THAT(grads, ElementsAreArray(whole.grads.Flat()));
  EXPECT_EQ(second.model.TakeLoss().sum, whole.model.TakeLoss().sum);
}

}  // namespace
}  // namespace mega::pipeline_parallel
