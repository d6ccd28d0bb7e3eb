// One sharding declaration per parameter. From it alone follow: local shape, initial values, extra
// gradient reductions, who counts in the gradient norm, optimizer shard, checkpoint slices and the
// name mapping of Hugging Face files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mega::planner {

// The axes of the two rank grids (DESIGN "Names and axes").
enum class Axis : uint8_t { kTensor, kContext, kData, kPipeline, kExpert, kExpertTensor };

struct Sharding {
  std::vector<int64_t> global_shape;
  // For each dimension the axis that cuts it into equal parts, or kNone.
  static constexpr int kNone = -1;
  std::vector<int> axis_of_dim;  // int(Axis) or kNone; same length as global_shape
  // Dimension 0 is this many tensors of equal size, one after the other, and the axis cuts each of
  // them (gate and up of an MLP), so that a rank's part is again such a stack.
  int64_t stacked = 1;
  // Axes over which every rank holds the same values …
  std::vector<Axis> replicated;
  // … and, out of those, the ones on which each rank sees only part of the gradient, so that it
  // must be summed over them (norms under sequence parallelism; data parallelism is implied).
  std::vector<Axis> partial;
  // The true gradient is zero (GPT-2's key bias): excluded from comparisons of gradients.
  bool zero_gradient = false;
};

// What a parameter is, before any rank exists.
struct ParameterInfo {
  std::string name;  // "layers.7.mlp.up.weight"
  Sharding sharding;
  int64_t layer = -1;  // decoder layer, or -1: embedding, final norm, head
  enum class Place : uint8_t { kEmbedding, kLayer, kFinal } place = Place::kLayer;
  // Initial values: constant, or normal with this standard deviation.
  enum class Init : uint8_t { kNormal, kOnes, kZeros } init = Init::kNormal;
  double init_std = 0.02;
  bool weight_decay = true;  // false for norms and biases (1-D tensors)
  // Key of its random stream: a hash of the name, so the list may change without changing values.
  uint64_t random_key = 0;
};

}  // namespace mega::planner
