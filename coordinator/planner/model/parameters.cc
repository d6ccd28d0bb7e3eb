// The list of parameters, and what is counted from it.
#include <cmath>
#include <string_view>

#include "base/hash.h"
#include "coordinator/planner/model/model_spec.h"

namespace mega::planner {
namespace {

// V vocabulary · D hidden · F feed-forward · N heads · G key/value heads · H head size

// Near names have far keys. Never change it: it would change the initial weights of every model.
uint64_t StableHash(std::string_view name) { return Finalise(Fnv1a(name)); }

class Builder {
 public:
  explicit Builder(const ModelSpec& spec) : spec_(spec) {}

  std::vector<ParameterInfo> Build() {
    using Place = ParameterInfo::Place;
    const int64_t vocab = spec_.vocab_size, width = spec_.hidden_size;
    Matrix("embedding.weight", {vocab, width}, kRows, spec_.init_std).place = Place::kEmbedding;
    for (int64_t layer = 0; layer < spec_.num_layers; ++layer) Layer(layer);
    Norm("final_norm.weight").place = Place::kFinal;
    if (!spec_.tie_embeddings)
      Matrix("head.weight", {vocab, width}, kRows, spec_.init_std).place = Place::kFinal;
    return std::move(list_);
  }

 private:
  static constexpr size_t kRows = 0, kColumns = 1;

  void Layer(int64_t layer) {
    const int64_t width = spec_.hidden_size, ffn = spec_.ffn_hidden_size;
    // Two projections a layer write into the residual stream; their smaller start keeps its
    // variance independent of depth. Radford et al. 2019 (GPT-2), section 2.3.
    const double residual_std =
        spec_.init_std / std::sqrt(2.0 * static_cast<double>(spec_.num_layers));
    const std::string prefix = fmt::format("layers.{}.", layer);
    const size_t first = list_.size();
    Norm(prefix + "attention_norm.weight");
    Matrix(prefix + "attention.qkv.weight", {spec_.q_size() + 2 * spec_.kv_size(), width}, kRows,
           spec_.init_std);
    Matrix(prefix + "attention.out.weight", {width, spec_.q_size()}, kColumns, residual_std);
    Norm(prefix + "mlp_norm.weight");
    Matrix(prefix + "mlp.gate_up.weight", {2 * ffn, width}, kRows, spec_.init_std)
        .sharding.stacked = 2;
    Matrix(prefix + "mlp.down.weight", {width, ffn}, kColumns, residual_std);
    for (size_t i = first; i < list_.size(); ++i) list_[i].layer = layer;
  }

  ParameterInfo& Add(std::string name, std::vector<int64_t> shape) {
    ParameterInfo& info = list_.emplace_back();
    info.random_key = StableHash(name);
    info.name = std::move(name);
    info.sharding.axis_of_dim.assign(shape.size(), Sharding::kNone);
    info.sharding.global_shape = std::move(shape);
    info.sharding.replicated = {Axis::kContext, Axis::kData};
    info.sharding.partial = {Axis::kContext};
    return info;
  }

  ParameterInfo& Matrix(std::string name, std::vector<int64_t> shape, size_t cut, double std) {
    ParameterInfo& info = Add(std::move(name), std::move(shape));
    info.sharding.axis_of_dim[cut] = static_cast<int>(Axis::kTensor);
    info.init_std = std;
    return info;
  }

  ParameterInfo& Norm(std::string name) {
    ParameterInfo& info = Add(std::move(name), {spec_.hidden_size});
    info.sharding.replicated = {Axis::kTensor, Axis::kContext, Axis::kData};
    info.sharding.partial = {Axis::kTensor, Axis::kContext};
    info.init = ParameterInfo::Init::kOnes;
    info.weight_decay = false;
    return info;
  }

  const ModelSpec& spec_;
  std::vector<ParameterInfo> list_;
};

}  // namespace

std::vector<ParameterInfo> Parameters(const ModelSpec& spec) { return Builder(spec).Build(); }

int64_t CountParameters(const ModelSpec& spec) {
  int64_t total = 0;
  for (const ParameterInfo& info : Parameters(spec)) {
    int64_t elements = 1;
    for (int64_t size : info.sharding.global_shape) elements *= size;
    total += elements;
  }
  return total;
}

double FlopsPerToken(const ModelSpec& spec, int64_t seq_length) {
  const double width = spec.hidden_size, layers = spec.num_layers;
  const double mlp = 3.0 * width * spec.ffn_hidden_size;
  const double projections = width * (2.0 * spec.q_size() + 2.0 * spec.kv_size());
  // Scores and weighted sum: 2 · seq_length · q_size multiply-adds, half of them under the mask.
  const double attention = static_cast<double>(seq_length) * spec.q_size();
  const double head = width * spec.vocab_size;
  // A multiply-add is two operations, and backward costs twice the forward.
  return 6.0 * (layers * (mlp + projections + attention) + head);
}

}  // namespace mega::planner
