#include "worker/engine/models/hf_names.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "fmt/ranges.h"

namespace mega::models {
namespace {

using kernels::DType;
using planner::ModelSpec;

// Rows of ours per group: [q…q, k, v], each head_dim rows.
std::vector<RowRange> QueryRanges(const ModelSpec& spec) {
  const int64_t q_rows = spec.num_attention_heads / spec.num_query_groups * spec.head_dim;
  const int64_t group_rows = q_rows + 2 * spec.head_dim;
  std::vector<RowRange> ranges;
  for (int64_t g = 0; g < spec.num_query_groups; ++g)
    ranges.push_back({.hf_row = g * q_rows, .our_row = g * group_rows, .rows = q_rows});
  return ranges;
}

// which: 0 = key, 1 = value.
std::vector<RowRange> KeyValueRanges(const ModelSpec& spec, int64_t which) {
  const int64_t q_rows = spec.num_attention_heads / spec.num_query_groups * spec.head_dim;
  const int64_t group_rows = q_rows + 2 * spec.head_dim;
  std::vector<RowRange> ranges;
  for (int64_t g = 0; g < spec.num_query_groups; ++g)
    ranges.push_back({.hf_row = g * spec.head_dim,
                      .our_row = g * group_rows + q_rows + which * spec.head_dim,
                      .rows = spec.head_dim});
  return ranges;
}

float Widen(const std::byte* at, DType dtype) {
  if (dtype == DType::kF32) {
    float value;
    std::memcpy(&value, at, sizeof(value));
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, at, sizeof(bits));
  if (dtype == DType::kBF16) return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  _Float16 half;
  std::memcpy(&half, &bits, sizeof(half));
  return static_cast<float>(half);
}

bool IsFloat(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16;
}

// Old exports carry the rope frequencies; a tied model may carry its head twice.
bool MayBeIgnored(const ModelSpec& spec, const std::string& name) {
  return name.ends_with("rotary_emb.inv_freq") || (spec.tie_embeddings && name == "lm_head.weight");
}

// "" or what is wrong with a tensor of the source.
std::string Complaint(const HfTensor& want, const absl::StatusOr<SourceTensor>& have) {
  if (!have.ok()) return fmt::format("{}: {}", want.name, std::string(have.status().message()));
  if (have->shape != want.shape)
    return fmt::format("{} is {} but the model needs {}", want.name, fmt::join(have->shape, "x"),
                       fmt::join(want.shape, "x"));
  if (!IsFloat(have->dtype))
    return fmt::format("{} is {}; F32, BF16 or F16 can be read", want.name,
                       kernels::NameOf(have->dtype));
  return "";
}

}  // namespace

std::vector<HfTensor> HfTensors(const ModelSpec& spec) {
  const int64_t D = spec.hidden_size, F = spec.ffn_hidden_size, V = spec.vocab_size;
  const auto same = [](std::string name, std::vector<int64_t> shape, std::string ours) {
    const int64_t rows = shape[0];
    return HfTensor{std::move(name),
                    std::move(shape),
                    std::move(ours),
                    {{.hf_row = 0, .our_row = 0, .rows = rows}}};
  };
  std::vector<HfTensor> all = {same("model.embed_tokens.weight", {V, D}, "embedding.weight")};
  for (int64_t i = 0; i < spec.num_layers; ++i) {
    const std::string hf = fmt::format("model.layers.{}.", i);
    const std::string ours = fmt::format("layers.{}.", i);
    const std::string qkv = ours + "attention.qkv.weight";
    const std::string gate_up = ours + "mlp.gate_up.weight";
    all.push_back(same(hf + "input_layernorm.weight", {D}, ours + "attention_norm.weight"));
    all.push_back({hf + "self_attn.q_proj.weight", {spec.q_size(), D}, qkv, QueryRanges(spec)});
    all.push_back(
        {hf + "self_attn.k_proj.weight", {spec.kv_size(), D}, qkv, KeyValueRanges(spec, 0)});
    all.push_back(
        {hf + "self_attn.v_proj.weight", {spec.kv_size(), D}, qkv, KeyValueRanges(spec, 1)});
    all.push_back(
        same(hf + "self_attn.o_proj.weight", {D, spec.q_size()}, ours + "attention.out.weight"));
    all.push_back(same(hf + "post_attention_layernorm.weight", {D}, ours + "mlp_norm.weight"));
    all.push_back({hf + "mlp.gate_proj.weight", {F, D}, gate_up, {{0, 0, F}}});
    all.push_back({hf + "mlp.up_proj.weight", {F, D}, gate_up, {{0, F, F}}});
    all.push_back(same(hf + "mlp.down_proj.weight", {D, F}, ours + "mlp.down.weight"));
  }
  all.push_back(same("model.norm.weight", {D}, "final_norm.weight"));
  if (!spec.tie_embeddings) all.push_back(same("lm_head.weight", {V, D}, "head.weight"));
  return all;
}

absl::Status CheckHf(const ModelSpec& spec, const TensorSource& source) {
  std::vector<std::string> complaints;
  std::set<std::string> expected;
  const std::set<std::string> present(source.names.begin(), source.names.end());
  for (const HfTensor& tensor : HfTensors(spec)) {
    expected.insert(tensor.name);
    std::string complaint = present.contains(tensor.name)
                                ? Complaint(tensor, source.read(tensor.name))
                                : fmt::format("{} is missing", tensor.name);
    if (!complaint.empty()) complaints.push_back(std::move(complaint));
  }
  for (const std::string& name : source.names)
    if (!expected.contains(name) && !MayBeIgnored(spec, name))
      complaints.push_back(fmt::format("{} is unknown to this model", name));
  if (complaints.empty()) return absl::OkStatus();
  return InvalidArgument(
      "the weights do not fit the model; compare config.json with the model section:\n  {}",
      fmt::join(complaints, "\n  "));
}

absl::Status LoadHf(const ModelSpec& spec, const TensorSource& source,
                    std::span<distributed::Parameter* const> parameters) {
  MEGA_RETURN_IF_ERROR(CheckHf(spec, source));
  std::map<std::string, distributed::Parameter*> ours;
  for (distributed::Parameter* parameter : parameters) ours[parameter->info.name] = parameter;
  for (const HfTensor& tensor : HfTensors(spec)) {
    const auto parameter = ours.find(tensor.ours);
    if (parameter == ours.end()) continue;  // another stage's
    MEGA_ASSIGN_OR_RETURN(const SourceTensor have, source.read(tensor.name));
    const kernels::TensorView value = parameter->second->value;
    const int64_t columns = value.rank() == 2 ? value.dim(1) : 1;
    const int64_t width = kernels::SizeOf(have.dtype);
    for (const RowRange& range : tensor.ranges) {
      const std::byte* from = have.bytes.data() + range.hf_row * columns * width;
      float* to = value.ptr<float>() + range.our_row * columns;
      for (int64_t i = 0; i < range.rows * columns; ++i)
        to[i] = Widen(from + i * width, have.dtype);
    }
  }
  return absl::OkStatus();
}

std::vector<float> ExportHf(const HfTensor& tensor, kernels::TensorView ours) {
  const int64_t columns = ours.rank() == 2 ? ours.dim(1) : 1;
  std::vector<float> values(tensor.shape[0] * columns);
  for (const RowRange& range : tensor.ranges)
    std::copy_n(ours.ptr<const float>() + range.our_row * columns, range.rows * columns,
                values.begin() + range.hf_row * columns);
  return values;
}

}  // namespace mega::models
