#include "coordinator/planner/model/model_spec.h"

#include <algorithm>

#include "coordinator/planner/spec/spec.h"

namespace mega::planner {
namespace {

int64_t TokenizerVocabulary(const v1::Data& data) { return 256; }  // byte is the only tokenizer

// Megatron's default for SwiGLU: the three matrices cost about what two of width 4·hidden would.
int64_t DefaultFfn(int64_t hidden) { return std::max<int64_t>(hidden * 8 / 3 / 64, 1) * 64; }

// Far above any model anyone trains, far below where products of shapes leave 64 bits.
constexpr double kMostParameters = 1e15;

double RoughParameters(const ModelSpec& spec) {
  const double attention = 2.0 * spec.hidden_size * (spec.q_size() + spec.kv_size());
  const double mlp = 3.0 * spec.hidden_size * spec.ffn_hidden_size;
  return spec.num_layers * (attention + mlp) + 2.0 * spec.vocab_size * spec.hidden_size;
}

}  // namespace

absl::StatusOr<ModelSpec> MakeModelSpec(const v1::JobSpec& resolved) {
  MEGA_RETURN_IF_ERROR(spec::ToStatus(spec::ValidateModel(resolved)));
  const v1::Model& model = resolved.model();
  ModelSpec spec;
  spec.num_layers = model.num_layers();
  spec.hidden_size = model.hidden_size();
  spec.ffn_hidden_size =
      model.has_ffn_hidden_size() ? model.ffn_hidden_size() : DefaultFfn(model.hidden_size());
  spec.num_attention_heads = model.num_attention_heads();
  spec.num_query_groups =
      model.has_num_query_groups() ? model.num_query_groups() : model.num_attention_heads();
  spec.head_dim =
      model.has_head_dim() ? model.head_dim() : model.hidden_size() / model.num_attention_heads();
  spec.vocab_size =
      model.has_vocab_size() ? model.vocab_size() : TokenizerVocabulary(resolved.data());
  spec.max_position_embeddings = model.has_max_position_embeddings()
                                     ? model.max_position_embeddings()
                                     : resolved.data().seq_length();
  spec.rope_theta = model.rope_theta();
  spec.norm_epsilon = model.norm_epsilon();
  spec.init_std = model.init_std();
  spec.tie_embeddings = model.tie_embeddings();
  spec.reference_attention = model.attention_backend() == "reference";
  if (RoughParameters(spec) > kMostParameters)
    return InvalidArgument(
        "model has about {:.1e} parameters; the most that can be trained is {:.0e}: check "
        "model.num_layers, hidden_size, ffn_hidden_size, head_dim and vocab_size",
        RoughParameters(spec), kMostParameters);
  return spec;
}

}  // namespace mega::planner
