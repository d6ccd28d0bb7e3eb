#include "worker/engine/models/decoder.h"

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/elementwise.h"
#include "kernels/philox.h"

namespace mega::models {

using planner::ParameterInfo;
using transformer::Attention;
using transformer::Embedding;
using transformer::Loss;
using transformer::LossHead;
using transformer::Mlp;

absl::StatusOr<std::unique_ptr<Decoder>> Decoder::Make(const planner::ModelSpec& spec,
                                                       const StageSlice& slice, Pool& pool,
                                                       Stream& stream) {
  std::unique_ptr<Decoder> decoder(new Decoder(spec, pool, stream));
  MEGA_RETURN_IF_ERROR(decoder->MakeParameters(slice));
  decoder->MakeBlocks(slice);
  return decoder;
}

Decoder::Decoder(const planner::ModelSpec& spec, const StageSlice& slice, Pool& pool,
                 Stream& stream)
    : Decoder(spec, pool, stream) {
  MEGA_CHECK_OK(MakeParameters(slice));
  MakeBlocks(slice);
}

absl::Status Decoder::MakeParameters(const StageSlice& slice) {
  const int64_t end_layer =
      slice.num_layers < 0 ? spec_.num_layers : slice.first_layer + slice.num_layers;
  MEGA_CHECK_LE(end_layer, spec_.num_layers);
  // A tied table would have to live, and its gradient to be summed, on both end stages.
  MEGA_CHECK(!spec_.tie_embeddings || slice.has_embedding == slice.has_loss);

  // Every value starts on a cache line.
  constexpr int64_t kAlignment = 16;
  int64_t elements = 0;
  std::vector<int64_t> starts;
  for (const ParameterInfo& info : planner::Parameters(spec_)) {
    const bool here = info.place == ParameterInfo::Place::kEmbedding ? slice.has_embedding
                      : info.place == ParameterInfo::Place::kFinal
                          ? slice.has_loss
                          : info.layer >= slice.first_layer && info.layer < end_layer;
    if (!here) continue;
    auto parameter = std::make_unique<Parameter>();
    parameter->info = info;
    parameter->offset.assign(info.sharding.global_shape.size(), 0);
    starts.push_back(elements);
    const int64_t count = Shape(info.sharding.global_shape).elements();
    elements += (count + kAlignment - 1) / kAlignment * kAlignment;
    parameters_.push_back(parameter.get());
    owned_.push_back(std::move(parameter));
  }
  absl::StatusOr<Tensor> weights =
      context_.pool.TryZeros(DType::kF32, Shape({elements}), Purpose::kWeights);
  if (!weights.ok()) return Annotate(weights.status(), "the weights");
  weights_ = *std::move(weights);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Shape shape(parameters_[i]->info.sharding.global_shape);
    parameters_[i]->value = weights_.view().Rows(starts[i], shape.elements()).View(shape);
  }
  return absl::OkStatus();
}

void Decoder::MakeBlocks(const StageSlice& slice) {
  const int64_t num_layers =
      slice.num_layers < 0 ? spec_.num_layers - slice.first_layer : slice.num_layers;
  rope_ = std::make_unique<transformer::RopeTable>(context_, spec_);
  if (slice.has_embedding)
    embedding_ = std::make_unique<Embedding>(context_, Need("embedding.weight"));
  for (int64_t i = 0; i < num_layers; ++i) {
    const std::string layer = fmt::format("layers.{}.", slice.first_layer + i);
    layers_.push_back(std::make_unique<Layer>(
        Layer{.attention = Attention(context_, spec_, *rope_,
                                     {.norm_D = Need(layer + "attention_norm.weight"),
                                      .qkv_CD = Need(layer + "attention.qkv.weight"),
                                      .out_DNH = Need(layer + "attention.out.weight")}),
              .mlp = Mlp(context_, spec_,
                         {.norm_D = Need(layer + "mlp_norm.weight"),
                          .gate_up_2FD = Need(layer + "mlp.gate_up.weight"),
                          .down_DF = Need(layer + "mlp.down.weight")})}));
  }
  if (slice.has_loss)
    loss_head_ =
        std::make_unique<LossHead>(context_, spec_, Need("final_norm.weight"),
                                   Need(spec_.tie_embeddings ? "embedding.weight" : "head.weight"));
}

void Decoder::InitWeights(uint64_t seed) {
  for (Parameter* parameter : parameters_) {
    const ParameterInfo& info = parameter->info;
    switch (info.init) {
      case ParameterInfo::Init::kNormal:
        kernels::FillNormal(context_.stream, parameter->value, Shape(info.sharding.global_shape),
                            parameter->offset, seed, info.random_key, 0,
                            static_cast<float>(info.init_std));
        break;
      case ParameterInfo::Init::kOnes:
        kernels::Fill(context_.stream, parameter->value, 1);
        break;
      case ParameterInfo::Init::kZeros:
        kernels::Fill(context_.stream, parameter->value, 0);
        break;
    }
  }
}

Parameter* Decoder::Find(std::string_view name) const {
  const auto found = std::find_if(parameters_.begin(), parameters_.end(),
                                  [&](const Parameter* p) { return p->info.name == name; });
  return found == parameters_.end() ? nullptr : *found;
}

Parameter* Decoder::Need(std::string_view name) const {
  Parameter* parameter = Find(name);
  if (parameter == nullptr)
    check::Fail(__FILE__, __LINE__, fmt::format("the parameter list has no {}", name));
  return parameter;
}

Loss Decoder::TakeLoss() { return std::exchange(loss_, {}); }

void Decoder::BeginStep(const transformer::StepMode& mode) {
  mode_ = mode;
  context_.forward_only = mode.forward_only;
  if (embedding_) embedding_->Clear();
  for (auto& layer : layers_) {
    layer->attention.Clear();
    layer->mlp.Clear();
  }
  if (loss_head_) loss_head_->Clear();
}

Tensor Decoder::Forward(int64_t micro_batch, const transformer::MicroBatch& batch, Tensor x_TD) {
  MEGA_CHECK_EQ(x_TD.defined(), embedding_ == nullptr);
  if (embedding_) x_TD = embedding_->Forward(micro_batch, batch.tokens_BS);
  const int64_t rows = batch.tokens_BS.dim(0);
  for (auto& layer : layers_) {
    x_TD = layer->attention.Forward(micro_batch, rows, std::move(x_TD));
    x_TD = layer->mlp.Forward(micro_batch, std::move(x_TD));
  }
  if (!loss_head_) return x_TD;
  const Loss loss = loss_head_->Forward(micro_batch, batch.labels_BS, std::move(x_TD), loss_scale_);
  loss_.sum += loss.sum;
  loss_.tokens += loss.tokens;
  return {};
}

Tensor Decoder::BackwardInput(int64_t micro_batch, Tensor dy_TD) {
  MEGA_CHECK_EQ(dy_TD.defined(), loss_head_ == nullptr);
  if (loss_head_) dy_TD = loss_head_->BackwardInput(micro_batch);
  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
    dy_TD = (*layer)->mlp.BackwardInput(micro_batch, std::move(dy_TD));
    dy_TD = (*layer)->attention.BackwardInput(micro_batch, std::move(dy_TD));
  }
  if (!embedding_) return dy_TD;
  embedding_->BackwardInput(micro_batch, std::move(dy_TD));
  return {};
}

void Decoder::BackwardWeight(int64_t micro_batch) {
  if (loss_head_) LossBackwardWeight(micro_batch);
  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
    (*layer)->mlp.BackwardWeight(micro_batch);
    for (const Parameter* parameter : (*layer)->mlp.parameters()) Ready(*parameter, micro_batch);
    (*layer)->attention.BackwardWeight(micro_batch);
    for (const Parameter* parameter : (*layer)->attention.parameters())
      Ready(*parameter, micro_batch);
  }
  if (embedding_) EmbeddingBackwardWeight(micro_batch);
}

Tensor Decoder::Backward(int64_t micro_batch, Tensor dy_TD) {
  MEGA_CHECK_EQ(dy_TD.defined(), loss_head_ == nullptr);
  if (loss_head_) {
    dy_TD = loss_head_->BackwardInput(micro_batch);
    LossBackwardWeight(micro_batch);
  }
  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
    dy_TD = (*layer)->mlp.BackwardInput(micro_batch, std::move(dy_TD));
    (*layer)->mlp.BackwardWeight(micro_batch);
    for (const Parameter* parameter : (*layer)->mlp.parameters()) Ready(*parameter, micro_batch);
    dy_TD = (*layer)->attention.BackwardInput(micro_batch, std::move(dy_TD));
    (*layer)->attention.BackwardWeight(micro_batch);
    for (const Parameter* parameter : (*layer)->attention.parameters())
      Ready(*parameter, micro_batch);
  }
  if (!embedding_) return dy_TD;
  embedding_->BackwardInput(micro_batch, std::move(dy_TD));
  EmbeddingBackwardWeight(micro_batch);
  return {};
}

// The head's own gradient was added in Forward. A tied one is final only after the embedding's.
void Decoder::LossBackwardWeight(int64_t micro_batch) {
  loss_head_->BackwardWeight(micro_batch);
  if (!spec_.tie_embeddings) Ready(*Need("head.weight"), micro_batch);
  Ready(*Need("final_norm.weight"), micro_batch);
}

void Decoder::EmbeddingBackwardWeight(int64_t micro_batch) {
  embedding_->BackwardWeight(micro_batch);
  Ready(*Need("embedding.weight"), micro_batch);
}

void Decoder::Ready(const Parameter& parameter, int64_t micro_batch) {
  if (micro_batch == mode_.last_backward && grad_ready_) grad_ready_(parameter);
}

Tensor Decoder::Infer(TensorView tokens_T, std::span<const int64_t> lengths,
                      transformer::KvCache& cache, bool all_positions) {
  MEGA_CHECK(embedding_ && loss_head_);
  BeginStep({.forward_only = true});
  std::vector<int32_t> positions;
  std::vector<int64_t> last_rows;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const int64_t seen = cache.length(static_cast<int64_t>(i));
    for (int64_t t = 0; t < lengths[i]; ++t) positions.push_back(static_cast<int32_t>(seen + t));
    if (lengths[i] > 0) last_rows.push_back(static_cast<int64_t>(positions.size()) - 1);
  }
  MEGA_CHECK_EQ(static_cast<int64_t>(positions.size()), tokens_T.elements());
  const TensorView rope_rows_T = rope_->Rows(positions);

  Tensor x_TD = embedding_->Forward(0, tokens_T);
  for (size_t i = 0; i < layers_.size(); ++i) {
    x_TD = layers_[i]->attention.Infer(x_TD, rope_rows_T, lengths, static_cast<int64_t>(i), cache);
    x_TD = layers_[i]->mlp.Infer(x_TD);
  }
  for (size_t i = 0; i < lengths.size(); ++i) cache.Advance(static_cast<int64_t>(i), lengths[i]);
  if (all_positions) return loss_head_->Logits(x_TD);

  const int64_t sequences = static_cast<int64_t>(last_rows.size());
  Tensor last_RD = context_.Activation({sequences, spec_.hidden_size});
  for (int64_t i = 0; i < sequences; ++i)
    kernels::Copy(context_.stream, x_TD.view().Rows(last_rows[i], 1), last_RD.view().Rows(i, 1));
  return loss_head_->Logits(last_RD);
}

}  // namespace mega::models
