// Our parameters ⇄ the tensors of a Hugging Face Llama folder. One table, read in both directions:
// each Hugging Face tensor is a list of row ranges of ours. Fused projections (qkv per key/value
// group, gate_up) are just more than one range.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "coordinator/planner/model/model_spec.h"
#include "worker/engine/distributed/parameter.h"

namespace mega::models {

struct RowRange {
  int64_t hf_row = 0;
  int64_t our_row = 0;
  int64_t rows = 0;
};
struct HfTensor {
  std::string name;  // "model.layers.0.self_attn.q_proj.weight"
  std::vector<int64_t> shape;
  std::string ours;  // "layers.0.attention.qkv.weight"
  std::vector<RowRange> ranges;
};
// Every tensor of the model, in the order of our parameters.
std::vector<HfTensor> HfTensors(const planner::ModelSpec& spec);

// One tensor of a checkpoint folder. The bytes stay valid as long as the source.
struct SourceTensor {
  kernels::DType dtype = kernels::DType::kF32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
};
struct TensorSource {
  std::vector<std::string> names;
  std::function<absl::StatusOr<SourceTensor>(const std::string& name)> read;
};

// Whether the source holds exactly the tensors of the model: missing, unknown and misshapen ones
// are all named in one error.
absl::Status CheckHf(const planner::ModelSpec& spec, const TensorSource& source);

// Fills the values of `parameters` (host memory) from F32, BF16 or F16 tensors. Nothing
// is written unless CheckHf is content.
absl::Status LoadHf(const planner::ModelSpec& spec, const TensorSource& source,
                    std::span<distributed::Parameter* const> parameters);

// The values of one Hugging Face tensor, out of ours (f32, row-major). `ours` is the whole
// parameter that tensor.ours names.
std::vector<float> ExportHf(const HfTensor& tensor, kernels::TensorView ours);

}  // namespace mega::models
