// A model as the planner and the engine see it: every number resolved, no optionals. Models are
// configurations of one decoder, not classes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "coordinator/planner/model/sharding.h"
#include "mega/v1/job.pb.h"

namespace mega::planner {

struct ModelSpec {
  int64_t num_layers = 0;
  int64_t hidden_size = 0;
  int64_t ffn_hidden_size = 0;
  int64_t num_attention_heads = 0;
  int64_t num_query_groups = 0;  // key/value heads
  int64_t head_dim = 0;
  int64_t vocab_size = 0;
  int64_t max_position_embeddings = 0;
  double rope_theta = 10000;
  double norm_epsilon = 1e-5;
  double init_std = 0.02;
  bool tie_embeddings = false;
  bool reference_attention = false;  // attention_backend: reference

  int64_t q_size() const { return num_attention_heads * head_dim; }
  int64_t kv_size() const { return num_query_groups * head_dim; }
};

// From a resolved spec (defaults applied). model.hf, if set, must have been read into the unset
// keys by then (FillFromHf). INVALID_ARGUMENT lists every violation, one a line, by key.
absl::StatusOr<ModelSpec> MakeModelSpec(const v1::JobSpec& resolved);

// Reads model.hf, if set, into the keys left unset. Before spec::ApplyDefaults, which would set
// them; relative folders must have been made absolute.
absl::Status FillFromHf(v1::Model& model);

// config.json of a Hugging Face folder as model keys. Both spellings (rope_theta /
// rope_parameters). Keys that change the numbers and that this release does not honour are refused
// by name.
absl::StatusOr<v1::Model> ReadHfConfig(const std::string& folder);
// Its eos_token_id: none, one or several.
absl::StatusOr<std::vector<int32_t>> ReadHfStopTokens(const std::string& folder);
// The text of one; `file` is its name in errors.
absl::StatusOr<v1::Model> ParseHfConfig(std::string_view text, const std::string& file);

// Every parameter, in forward order. The one list: the engine builds from it, checkpoints are named
// by it, the planner counts it. Names:
//   embedding.weight [V, D]
//   layers.N.attention_norm.weight [D]          layers.N.attention.qkv.weight [(N+2G)·H, D], rows
//   per KV group: [q…q, k, v]                   layers.N.attention.out.weight [D, N·H]
//   layers.N.mlp_norm.weight [D]                layers.N.mlp.gate_up.weight [2F, D] = [gate | up]
//   layers.N.mlp.down.weight [D, F]             final_norm.weight [D]    head.weight [V, D]
//   (untied)
std::vector<ParameterInfo> Parameters(const ModelSpec& spec);

int64_t CountParameters(const ModelSpec& spec);

// Model FLOPs of one token, forward and backward (3× forward), a causal mask counted as half.
// The one formula of the project (semantics: num_floating_point_operations).
double FlopsPerToken(const ModelSpec& spec, int64_t seq_length);

}  // namespace mega::planner
