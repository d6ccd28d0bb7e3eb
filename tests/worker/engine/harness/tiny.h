// A tiny model with gradients of its own, and batches for it: what most tests of the engine need.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "kernels/elementwise.h"
#include "worker/engine/models/decoder.h"
#include "worker/engine/tensor/pool.h"
#include "worker/engine/transformer/stage.h"

namespace mega::testing {

inline planner::ModelSpec TinySpec() {
  return {.num_layers = 2,
          .hidden_size = 32,
          .ffn_hidden_size = 64,
          .num_attention_heads = 4,
          .num_query_groups = 2,
          .head_dim = 8,
          .vocab_size = 96,
          .max_position_embeddings = 16,
          .init_std = 0.2};  // large enough for every part to matter
}

// Token and label tensors of its own.
class Batch {
 public:
  Batch(Pool& pool, int64_t rows, int64_t positions, std::span<const int32_t> tokens,
        std::span<const int32_t> labels)
      : tokens_(pool.Allocate(DType::kI32, {rows, positions}, Purpose::kWorkspace)),
        labels_(pool.Allocate(DType::kI32, {rows, positions}, Purpose::kWorkspace)) {
    MEGA_CHECK_EQ(static_cast<int64_t>(tokens.size()), rows * positions);
    MEGA_CHECK_EQ(tokens.size(), labels.size());
    std::memcpy(tokens_.view().data(), tokens.data(), tokens.size_bytes());
    std::memcpy(labels_.view().data(), labels.data(), labels.size_bytes());
  }
  static Batch Random(Pool& pool, int64_t rows, int64_t positions, int64_t vocab, uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<int32_t> tokens(rows * positions), labels(rows * positions);
    for (int32_t& id : tokens) id = static_cast<int32_t>(random() % vocab);
    for (int32_t& id : labels) id = static_cast<int32_t>(random() % vocab);
    return Batch(pool, rows, positions, tokens, labels);
  }

  transformer::MicroBatch view() const {
    return {.tokens_BS = tokens_.view(), .labels_BS = labels_.view()};
  }
  int32_t* labels() { return labels_.view().ptr<int32_t>(); }

 private:
  Tensor tokens_, labels_;
};

// Main gradients without buckets.
class PlainGrads {
 public:
  PlainGrads(Pool& pool, std::span<distributed::Parameter* const> parameters) {
    for (distributed::Parameter* parameter : parameters) {
      tensors_.push_back(pool.Zeros(DType::kF32, parameter->value.shape(), Purpose::kGrads));
      parameter->main_grad = tensors_.back().view();
    }
  }
  void Zero(Stream& stream) {
    for (const Tensor& tensor : tensors_) kernels::Fill(stream, tensor, 0);
  }
  // All gradients, one after the other.
  std::vector<float> Flat() const {
    std::vector<float> all;
    for (const Tensor& tensor : tensors_) {
      const auto values = tensor.view().flat<const float>();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

 private:
  std::vector<Tensor> tensors_;
};

struct TinyModel {
  explicit TinyModel(const planner::ModelSpec& spec = TinySpec(), uint64_t seed = 7,
                     const models::StageSlice& slice = {})
      : model(spec, slice, pool, stream), grads(pool, model.parameters()) {
    model.InitWeights(seed);
  }

  // One training step's forward and backward over the batches; gradients are of the mean loss.
  transformer::Loss Run(std::span<const transformer::MicroBatch> batches, bool apart = false) {
    const int64_t count = static_cast<int64_t>(batches.size());
    grads.Zero(stream);
    model.BeginStep({.last_backward = count - 1});
    for (int64_t m = 0; m < count; ++m) {
      model.Forward(m, batches[m], {});
      if (apart) {
        model.BackwardInput(m, {});
        model.BackwardWeight(m);
      } else {
        model.Backward(m, {});
      }
    }
    return model.TakeLoss();
  }

  Stream stream{Device{}, 1};
  Pool pool{Device{}};
  models::Decoder model;
  PlainGrads grads;
};

}  // namespace mega::testing
