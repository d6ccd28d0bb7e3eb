// The one decoder: embedding → layers of (attention, feed-forward) → norm, head and loss, built
// from the planner's parameter list. A pipeline stage is a slice of it; one rank alone has the
// whole.
//
//   Decoder model(spec, {}, pool, stream);
//   GradBuffer grads(pool, model.parameters(), …);      // gives every parameter its main_grad
//   model.InitWeights(seed);                            // or load
//   per step: zero the gradients, set_loss_scale, run the schedule (pipeline_parallel/executor.h),
//             TakeLoss
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "coordinator/planner/model/model_spec.h"
#include "worker/engine/distributed/parameter.h"
#include "worker/engine/transformer/attention.h"
#include "worker/engine/transformer/embedding.h"
#include "worker/engine/transformer/kv_cache.h"
#include "worker/engine/transformer/loss.h"
#include "worker/engine/transformer/mlp.h"
#include "worker/engine/transformer/rope_table.h"
#include "worker/engine/transformer/stage.h"

namespace mega::models {

using distributed::Parameter;

// The part of the model on this rank.
struct StageSlice {
  int64_t first_layer = 0;
  int64_t num_layers = -1;  // -1: all from first_layer on
  bool has_embedding = true;
  bool has_loss = true;
};

class Decoder : public transformer::Stage {
 public:
  // Allocates the weights, one buffer (Purpose::kWeights), zero until InitWeights or a load.
  // Main gradients are the caller's (distributed/grad_buffer.h); training needs them, evaluation
  // and generation do not.
  // RESOURCE_EXHAUSTED where they do not fit on the device.
  static absl::StatusOr<std::unique_ptr<Decoder>> Make(const planner::ModelSpec& spec,
                                                       const StageSlice& slice, Pool& pool,
                                                       Stream& stream);
  // Same; running out of memory aborts.
  Decoder(const planner::ModelSpec& spec, const StageSlice& slice, Pool& pool, Stream& stream);

  // Each element by its global coordinates, so every layout starts from the same weights.
  void InitWeights(uint64_t seed);

  const planner::ModelSpec& spec() const { return spec_; }
  // In forward order.
  std::span<Parameter* const> parameters() const { return parameters_; }
  Parameter* Find(std::string_view name) const;  // null if this stage has none

  // What each token's loss counts in the gradient: 1 / unmasked tokens of the global batch.
  void set_loss_scale(float scale) { loss_scale_ = scale; }
  // Sum over the Forwards since the last TakeLoss.
  transformer::Loss TakeLoss();
  // Called when a parameter's gradient is final for the step: in the last micro-batch's
  // BackwardWeight, in the order in which they finish.
  void set_grad_ready_hook(std::function<void(const Parameter&)> hook) {
    grad_ready_ = std::move(hook);
  }

  void BeginStep(const transformer::StepMode& mode) override;
  Tensor Forward(int64_t micro_batch, const transformer::MicroBatch& batch, Tensor x_TD) override;
  Tensor BackwardInput(int64_t micro_batch, Tensor dy_TD) override;
  void BackwardWeight(int64_t micro_batch) override;
  Tensor Backward(int64_t micro_batch, Tensor dy_TD) override;

  // Generation (needs the whole model): tokens_T i32 are lengths[i] new tokens of sequence i, back
  // to back, appended to `cache`. Returns logits [sequences with tokens, V] of the last token of
  // each, or of all tokens [T, V].
  Tensor Infer(TensorView tokens_T, std::span<const int64_t> lengths, transformer::KvCache& cache,
               bool all_positions = false);

 private:
  struct Layer {
    transformer::Attention attention;
    transformer::Mlp mlp;
  };
  Decoder(const planner::ModelSpec& spec, Pool& pool, Stream& stream)
      : spec_(spec), context_{.pool = pool, .stream = stream} {}
  absl::Status MakeParameters(const StageSlice& slice);
  void MakeBlocks(const StageSlice& slice);
  Parameter* Need(std::string_view name) const;
  void Ready(const Parameter& parameter, int64_t micro_batch);
  void LossBackwardWeight(int64_t micro_batch);
  void EmbeddingBackwardWeight(int64_t micro_batch);

  planner::ModelSpec spec_;
  transformer::Context context_;
  Tensor weights_;
  std::vector<std::unique_ptr<Parameter>> owned_;
  std::vector<Parameter*> parameters_;
  std::unique_ptr<transformer::RopeTable> rope_;
  std::unique_ptr<transformer::Embedding> embedding_;  // null without has_embedding
  std::vector<std::unique_ptr<Layer>> layers_;
  std::unique_ptr<transformer::LossHead> loss_head_;  // null without has_loss

  transformer::StepMode mode_;
  float loss_scale_ = 1;
  transformer::Loss loss_;
  std::function<void(const Parameter&)> grad_ready_;
};

}  // namespace mega::models
